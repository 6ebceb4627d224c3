package main

import (
	"context"
	"reflect"
	"slices"

	"countersign/app/config"
)

// followConfig applies changes of the configuration file while the station
// runs.
func (s *station) followConfig(ctx context.Context) {
	before := s.fromFile
	err := config.Watch(ctx, s.place.configFile(), s.fromFile, func(next config.Config, err error) {
		if err != nil {
			s.tell("The configuration file was changed and cannot be used; the last good one stays. " + err.Error())
			return
		}
		s.apply(before, next)
		before = next
	})
	if err != nil {
		s.log.Warn("changes of the configuration will not be seen before a restart", "error", err)
	}
}

// apply takes over what can change while commands run, and says what cannot.
func (s *station) apply(before, next config.Config) {
	if !s.levelGiven {
		s.level.Set(next.LogLevel)
	}
	s.relay.waiting.Store(&next.Notifications.Waiting)
	for i, c := range s.config.Connections {
		for _, n := range next.Connections {
			if c.Name == n.Name && c.Harness == n.Harness {
				s.engines[i].SetRoom(n.MaxHeld, n.MaxRunning)
			}
		}
	}
	if reflect.DeepEqual(guarded(before), guarded(next)) {
		s.log.Info("the changed configuration is in force")
		return
	}
	if len(s.config.Connections) > 0 && guarding(next) != guarding(s.fromFile) {
		s.tell("What guards this machine was changed in the configuration file. The next start asks you to accept that before anything runs; until then what was in force still is. To see the change: " +
			s.place.self() + " config pending")
		return
	}
	s.tell("The configuration file was changed. Connections, confinement, environment and limits take effect at the next start; until then what was in force still is.")
}

// guarded is the part of a configuration that takes a restart: all but what apply
// takes over.
func guarded(c config.Config) config.Config {
	c.LogLevel, c.Notifications = 0, config.Notifications{}
	c.Connections = slices.Clone(c.Connections)
	for i := range c.Connections {
		c.Connections[i].MaxHeld, c.Connections[i].MaxRunning = 0, 0
	}
	return c
}

// tell says something to the operator, in the window where there is one.
func (s *station) tell(words string) {
	s.log.Warn(words)
	s.banner(words)
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"countersign/app/config"
	"countersign/worker"
)

// untended is what of the journal's unfinished holds no connection is to: their
// results are not delivered, and what waited is not shown.
func untended(left []worker.LeftOpen, connections []config.Connection) []worker.LeftOpen {
	return slices.DeleteFunc(left, func(l worker.LeftOpen) bool {
		return slices.ContainsFunc(connections, func(c config.Connection) bool {
			return c.Harness == l.Origin && c.EnvironmentID == l.Environment
		})
	})
}

// leftOpenWords tells an operator of what is untended, and what to do.
func leftOpenWords(l worker.LeftOpen) string {
	items, were := "1 item", "was"
	if n := len(l.Holds); n > 1 {
		items, were = fmt.Sprintf("%d items", n), "were"
	}
	end := "harness " + l.Origin
	if l.Environment != "" {
		end += " environment " + l.Environment
	}
	return fmt.Sprintf("%s of %s %s left unfinished (%s), and no connection is to it now. "+
		"Add the connection again to have results delivered, and what waited shown.", items, end, were, idList(l.Holds))
}

// idList names the first few of some items.
func idList(holds []worker.HoldID) string {
	const most = 5
	ids := make([]string, 0, most+1)
	for i, id := range holds {
		if i == most {
			ids = append(ids, fmt.Sprintf("and %d more", len(holds)-most))
			break
		}
		ids = append(ids, fmt.Sprintf("#%d", id))
	}
	return strings.Join(ids, ", ")
}

// tellLeftOpen looks for what is untended, once, and tells the operator.
func (s *station) tellLeftOpen(ctx context.Context) {
	left, err := s.store.LeftOpen(ctx)
	if err != nil {
		s.log.Warn("what other connections left unfinished could not be read", "error", err)
		return
	}
	s.leftOpen = untended(left, s.config.Connections)
	for _, l := range s.leftOpen {
		s.tell(leftOpenWords(l))
	}
}

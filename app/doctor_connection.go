package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"countersign/app/config"
	"countersign/worker/api"
	"countersign/worker/api/wire"
)

// doctorRequest bounds each question to a harness.
const doctorRequest = 10 * time.Second

// maxClockGap is how far this machine's clock and the harness's may be apart
// without a word: times in the history are then told apart.
const maxClockGap = 30 * time.Second

// connection makes the checks of one connection.
func (d *doctor) connection(ctx context.Context, c config.Connection) (found []finding) {
	if f, has := d.atWork(c); has {
		found = append(found, f)
	}
	found = append(found, d.workDirectory(c))
	keys, f := d.credentials(ctx, c)
	found = append(found, f)
	if f.Grade == isProblem {
		return found
	}
	return append(found, d.harness(ctx, c, keys)...)
}

func (d *doctor) workDirectory(c config.Connection) finding {
	dir, err := config.CheckWorkDir(c.WorkDir, d.place.own()...)
	if err != nil {
		return finding{Check: "work directory", Grade: isProblem, Means: fmt.Sprintf("%s %v.", c.WorkDir, err), Do: "Nothing starts before it can be used."}
	}
	return finding{Check: "work directory", Grade: isOK, Means: dir + " can be used."}
}

// credentials finds the keys as a start does, and says where each comes from,
// never what it is.
func (d *doctor) credentials(ctx context.Context, c config.Connection) (config.Credentials, finding) {
	f := finding{Check: "credentials", Grade: isOK}
	given := d.given
	if len(d.config.Connections) > 1 {
		given = config.Credentials{} // each key belongs to one harness
	}
	var ring watchedKeyring
	keys, err := config.FindCredentials(ctx, c, given, ring.watch(d.keyring), d.place.config, d.log)
	if err != nil {
		f.Grade, f.Means = isProblem, err.Error()
		return keys, f
	}
	from := func(key, given string, inRing bool) string {
		switch {
		case key == "":
			return "none"
		case given != "":
			return "from the environment"
		case inRing:
			return "from the system keyring"
		}
		return "from " + config.CredentialsFile
	}
	f.Means = fmt.Sprintf("API key: %s. Environment key: %s.", from(keys.APIKey, given.APIKey, ring.apiKey.Load()),
		from(keys.EnvironmentKey, given.EnvironmentKey, ring.environmentKey.Load()))
	if keys.EnvironmentKey != "" {
		f.Means += " Whether the environment key is taken shows at the first claim."
	}
	switch {
	case ring.failed():
		f.Grade, f.Do = isWarning, "The system keyring did not answer: unlock it, or keep keys in "+config.CredentialsFile+"."
	case keys != (config.Credentials{}) && c.Exposed():
		f.Grade, f.Do = isWarning, "They are sent over the network unencrypted: better use https."
	case d.given != given && d.given != (config.Credentials{}):
		f.Grade, f.Do = isWarning, "The keys in the environment are not used where there are several connections: keep them in the keyring or in "+config.CredentialsFile+"."
	}
	return keys, f
}

// watchedKeyring notes what a keyring answered, without the answers.
type watchedKeyring struct {
	asked, answered        atomic.Int32
	trouble                atomic.Bool
	apiKey, environmentKey atomic.Bool
}

func (w *watchedKeyring) watch(ring config.Keyring) config.Keyring {
	return func(service, user string) (string, error) {
		w.asked.Add(1)
		defer w.answered.Add(1)
		secret, err := ring(service, user)
		switch {
		case err == nil && secret == "":
		case err == nil && strings.HasSuffix(user, " api-key"):
			w.apiKey.Store(true)
		case err == nil:
			w.environmentKey.Store(true)
		case !isNoSecret(err):
			w.trouble.Store(true)
		}
		return secret, err
	}
}

// failed says that the keyring could not be asked, or has not answered.
func (w *watchedKeyring) failed() bool {
	return w.trouble.Load() || w.asked.Load() > w.answered.Load()
}

// harness asks a harness what a start asks it: whether it has accept, without
// naming an item. That changes nothing there.
func (d *doctor) harness(ctx context.Context, c config.Connection, keys config.Credentials) []finding {
	f := finding{Check: "harness", Grade: isOK}
	client, err := api.New(api.Options{Origin: c.Harness, APIKey: keys.APIKey, EnvironmentID: c.EnvironmentID,
		EnvironmentKey: keys.EnvironmentKey, Timeout: doctorRequest})
	if err != nil {
		f.Grade, f.Means, f.Do = isProblem, err.Error()+".", "Nothing is sent before that is mended."
		return []finding{f}
	}
	defer client.CloseIdleConnections()
	begun := time.Now()
	err = client.Probe(ctx)
	took := time.Since(begun).Round(time.Millisecond)
	var refused *api.Refused
	if err != nil && !errors.As(err, &refused) {
		f.Grade, f.Means = isProblem, fmt.Sprintf("%s gives no usable answer: %v.", c.Harness, err)
		f.Do = "Nothing is claimed before it does. Is it running, is the address right, does a proxy stand between?"
		return []finding{f}
	}
	f.Means = fmt.Sprintf("%s answered in %v.", c.Harness, took)
	return []finding{f, acceptFinding(refused, keys), clockFinding(ctx, c)}
}

// acceptFinding is what the answer to the probe means.
func acceptFinding(refused *api.Refused, keys config.Credentials) finding {
	f := finding{Check: "accept", Grade: isOK, Means: "The harness can accept a start."}
	switch {
	case refused == nil:
	case refused.Reason == api.NoAcceptRoute:
		f.Grade, f.Means = isProblem, "The harness has no accept, so it cannot authorize a start: nothing is claimed there."
		f.Do = "Update the harness."
	case refused.Reason == api.Credentials && keys.APIKey == "":
		f.Grade, f.Means = isProblem, fmt.Sprintf("The harness wants an API key, and there is none (HTTP %d).", refused.Status)
		f.Do = "Give it in " + config.APIKeyVar + ", the system keyring or " + config.CredentialsFile + "."
	case refused.Reason == api.Credentials:
		f.Grade, f.Means = isProblem, fmt.Sprintf("The harness rejected the API key (HTTP %d).", refused.Status)
		f.Do = "Get a new one: it is wrong or has expired."
	default:
		f.Grade, f.Means, f.Do = isProblem, refused.Error()+".", "Is this address a harness's?"
	}
	return f
}

// clockFinding compares the clocks. Leases and decisions do not go by them, but
// people do who read the history beside the harness's.
func clockFinding(ctx context.Context, c config.Connection) finding {
	f := finding{Check: "clock", Grade: isOK}
	gap, known := clockGap(ctx, c.Harness)
	switch {
	case !known:
		f.Means = "The harness does not tell its time."
	case gap.Abs() > maxClockGap:
		f.Grade, f.Means = isWarning, fmt.Sprintf("This machine's clock is %v %s the harness's. Leases do not go by it, but times in the history will not match.",
			gap.Abs().Round(time.Second), map[bool]string{true: "ahead of", false: "behind"}[gap > 0])
		f.Do = "Set the clock: is time synchronization on?"
	default:
		f.Means = "This machine's clock agrees with the harness's."
	}
	return f
}

// clockGap is how far this machine's clock is ahead of that of a harness, by the
// Date of its health page, which tells whole seconds and takes no key.
func clockGap(ctx context.Context, origin string) (gap time.Duration, known bool) {
	ctx, cancel := context.WithTimeout(ctx, doctorRequest)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+wire.HealthPath, nil)
	if err != nil {
		return 0, false
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	before := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return 0, false // an error can name a proxy with its password
	}
	resp.Body.Close()
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0, false
	}
	half := time.Since(before) / 2
	return before.Add(half).Sub(theirs.Add(500 * time.Millisecond)), true
}

package policy

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"countersign/worker/api/wire"
	"countersign/worker/execute"
)

// Grant is a narrow permission that an operator gave for one session of one
// connection: either for the very same item, or for reads and lists below a
// directory. It overrides what is asked by default, and an ask rule only if that
// rule asked when it was given (APPROVALS.md, "What the operator can answer").
type Grant struct {
	ID         string    `json:"id"`
	Connection string    `json:"connection"`
	Session    string    `json:"session"`
	From       string    `json:"from"`              // harness and environment: session ids are theirs
	Dir        string    `json:"dir"`               // canonical work directory
	Exactly    string    `json:"exactly,omitempty"` // hash of the item; see fingerprint
	Under      string    `json:"under,omitempty"`   // or a directory, relative to the root; "." for all
	Text       string    `json:"text"`              // what it is for, for people; untrusted
	Overrides  string    `json:"overrides,omitempty"`
	Made       time.Time `json:"made"`
	Until      time.Time `json:"until,omitzero"` // zero: as long as the session
	Matched    int64     `json:"matched"`
	Last       time.Time `json:"last,omitzero"`
}

// GrantExactly makes a grant for items identical to i: the same command,
// directory and environment, or the same path and content. e is what was said
// of the item when it was shown.
func GrantExactly(i Item, e Explanation, made, until time.Time) Grant {
	text := i.Command
	if i.Kind != wire.KindExec {
		text = i.Kind + " " + i.Path
	}
	return Grant{ID: rand.Text(), Connection: i.Connection, Session: i.Session, From: i.From, Dir: i.Dir, Exactly: fingerprint(i.Task),
		Text: text, Overrides: e.asked, Made: made, Until: until}
}

// GrantReads makes a grant for reads and lists below a directory of the work
// directory, given as a clean relative path, "." for all of it.
func GrantReads(i Item, dir string, made, until time.Time) Grant {
	return Grant{ID: rand.Text(), Connection: i.Connection, Session: i.Session, From: i.From, Dir: i.Dir, Under: dir,
		Text: "read and list " + dir, Made: made, Until: until}
}

// fingerprint is a hash of all that an item does, but for its time limit.
func fingerprint(t execute.Task) string {
	raw, err := json.Marshal([]any{t.Kind, t.Command, t.Cwd, t.Env, t.Path, t.Content})
	if err != nil {
		panic(err) // strings always encode
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// covers reports whether the grant is for an item. rel is where a read or a list
// leads, relative to the root; "" if that is not known or outside.
func (g Grant) covers(i Item, rel string, now time.Time) bool {
	switch {
	case g.Connection != i.Connection || g.Session != i.Session || g.From != i.From || g.Dir != i.Dir:
		return false
	case !g.Until.IsZero() && !now.Before(g.Until):
		return false
	case g.Exactly != "":
		return g.Exactly == fingerprint(i.Task)
	case i.Kind != wire.KindRead && i.Kind != wire.KindList || rel == "":
		return false
	}
	return g.Under == "." || rel == g.Under || strings.HasPrefix(rel, g.Under+"/")
}

// GrantStore keeps grants across restarts.
type GrantStore interface {
	Grants() ([]Grant, error)
	SaveGrant(Grant) error // makes or replaces the one of this ID
	DropGrant(id string) error
}

// Grants are the grants in force. They are safe for concurrent use; only what
// gives or ends one waits for the store.
type Grants struct {
	store GrantStore // nil: they end with the process

	mu   sync.Mutex
	list []Grant
}

// NewGrants takes over what the store has; store may be nil.
func NewGrants(store GrantStore) (*Grants, error) {
	g := &Grants{store: store}
	if store != nil {
		list, err := store.Grants()
		if err != nil {
			return nil, fmt.Errorf("read the grants: %w", err)
		}
		g.list = list
	}
	return g, nil
}

// Add puts a grant into force once it is kept.
func (g *Grants) Add(grant Grant) error {
	if grant.Exactly == "" && grant.Under == "" {
		return fmt.Errorf("grant %s: it is for nothing", grant.ID)
	}
	if g.store != nil {
		if err := g.store.SaveGrant(grant); err != nil {
			return fmt.Errorf("grant %s: %w", grant.ID, err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, grant)
	return nil
}

// Revoke ends a grant at once, whether or not the store can be told.
func (g *Grants) Revoke(id string) error {
	return g.drop(func(o Grant) bool { return o.ID == id })
}

// EndSession ends the grants of a session of a harness and environment.
func (g *Grants) EndSession(from, session string) error {
	return g.drop(func(o Grant) bool { return o.From == from && o.Session == session })
}

// unheard is how long a session may be silent before its grants end: nothing says
// that it did.
const unheard = 24 * time.Hour

// EndLapsed ends the grants whose time is over, and those that nothing asked for
// in a day.
func (g *Grants) EndLapsed(now time.Time) error {
	return g.drop(func(o Grant) bool {
		if !o.Until.IsZero() {
			return !now.Before(o.Until)
		}
		return now.Sub(o.Made) > unheard && now.Sub(o.Last) > unheard
	})
}

func (g *Grants) drop(which func(Grant) bool) (err error) {
	var ended []Grant
	g.mu.Lock()
	g.list = slices.DeleteFunc(g.list, func(o Grant) bool {
		if which(o) {
			ended = append(ended, o)
		}
		return which(o)
	})
	g.mu.Unlock()
	for _, o := range ended {
		if g.store == nil {
			break
		}
		if e := g.store.DropGrant(o.ID); e != nil {
			err = fmt.Errorf("end grant %s: %w", o.ID, e)
		}
	}
	return err
}

// List returns the grants, oldest first.
func (g *Grants) List() []Grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.list)
}

// find returns the grant that covers an item and overrides what asked.
func (g *Grants) find(i Item, rel, asked string, now time.Time) (Grant, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range g.list {
		if (asked == "" || o.Overrides == asked) && o.covers(i, rel, now) {
			return o, true
		}
	}
	return Grant{}, false
}

// count records that a grant decided. Counts last as long as the process.
func (g *Grants) count(id string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for n := range g.list {
		if g.list[n].ID == id {
			g.list[n].Matched++
			g.list[n].Last = now
		}
	}
}

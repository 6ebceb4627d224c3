package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/aymanbagabas/go-udiff"
)

// Source is the operator's rule file, and what of it is in force in the books of
// their connections. What was in force once stays so until the operator has seen
// a change that was made outside Countersign, and until a file that cannot be used
// is mended (APPROVALS.md, DESIGN.md "Configuration"). It is safe for concurrent
// use; its methods read and write files.
type Source struct {
	file string
	kept KeptRules

	mu      sync.Mutex
	places  []place
	loaded  bool
	inForce []byte
	since   time.Time
	pending *Change
	broken  error // why the file cannot be used

	followers followers
}

// KeptRules remembers across restarts which rules were in force.
type KeptRules interface {
	// RulesInForce returns the text that was last kept for a file, nil for none.
	RulesInForce(file string) ([]byte, error)
	// KeepRules keeps a text; when it returns nil it is on disk.
	KeepRules(file string, text []byte) error
}

// place is one connection's book and where its rules are read for.
type place struct {
	connection string
	book       *Book
	ctx        Context
}

// Change is a rule file that was changed outside Countersign and waits for the
// operator to see it.
type Change struct {
	Hash string // SHA-256 of the file, in hexadecimal: what accepting it names
	Diff string // unified, against what is in force; untrusted
}

// RulesState is what a Source has in force, for showing.
type RulesState struct {
	File    string
	Hash    string    // of what is in force; "" where there are no rules
	Text    string    // of what is in force
	Since   time.Time // when it came into force in this run
	Counts  []Count   // of all connections together
	Pending *Change
	Broken  string // why the file as it is now cannot be used; ""
	Mode    Mode   // how rules are used in this run; "" where they are not loaded
	Fresh   bool   // there is neither a file nor a rule in force: all is asked for
}

// NewSource returns the source for a rule file, which need not exist. Nothing is
// in force until Load.
func NewSource(file string, kept KeptRules) *Source { return &Source{file: file, kept: kept} }

// File is the name of the rule file.
func (s *Source) File() string { return s.file }

// Serve has a connection's book follow the source, from Load on.
func (s *Source) Serve(connection string, b *Book, ctx Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places = append(s.places, place{connection, b, ctx})
}

// Load puts rules into force at the start: those of the file where they were in
// force before, where none ever were, or where the operator named the file for
// this start (trusted). A file that was changed meanwhile waits, and one that
// cannot be used is an error; in both cases what was in force before still is.
func (s *Source) Load(trusted bool) error {
	defer s.followers.tell()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = true
	before, err := s.kept.RulesInForce(s.file)
	if err != nil {
		return err
	}
	text, err := s.read()
	if err == nil && (trusted || before == nil || bytes.Equal(before, text)) {
		return s.enforce(text)
	}
	var other error
	if before == nil {
		other = s.use(nil) // what is denied by nature still is
	} else if other = s.use(before); other == nil {
		s.inForce = before
	}
	if err != nil {
		s.broken = err
		return errors.Join(err, other)
	}
	s.pending = s.change(text)
	return other
}

// read returns the file's text once it loads and passes its tests everywhere. A
// file that does not exist has no rules.
func (s *Source) read() ([]byte, error) {
	text, err := readRuleFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = s.parse(text)
	return text, err
}

// parse reads a text for every place.
func (s *Source) parse(text []byte) ([]*Rules, error) {
	rules := make([]*Rules, len(s.places))
	for i, p := range s.places {
		var err error
		if rules[i], err = Parse(s.file, text, p.ctx); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

// use puts a text into force in every book, or in none.
func (s *Source) use(text []byte) error {
	rules, err := s.parse(text)
	if err != nil {
		return err
	}
	for i, p := range s.places {
		p.book.Use(rules[i])
	}
	return nil
}

// enforce keeps a text and puts it into force.
func (s *Source) enforce(text []byte) error {
	if _, err := s.parse(text); err != nil {
		return err
	}
	if err := s.kept.KeepRules(s.file, text); err != nil {
		return err
	}
	if err := s.use(text); err != nil {
		return err
	}
	s.inForce, s.since, s.pending, s.broken = text, time.Now(), nil, nil
	return nil
}

// Look reads the file anew, after a change of it. It says whether the operator
// has to be told: the change waits for them, or cannot be used.
func (s *Source) Look() (tell bool) {
	defer s.followers.tell()
	s.mu.Lock()
	defer s.mu.Unlock()
	was, wasBroken := s.pending, s.broken
	text, err := s.read()
	s.pending, s.broken = nil, err
	if err == nil && !bytes.Equal(text, s.inForce) {
		s.pending = s.change(text)
	}
	if s.broken != nil {
		return wasBroken == nil || wasBroken.Error() != s.broken.Error()
	}
	return s.pending != nil && (was == nil || was.Hash != s.pending.Hash)
}

func (s *Source) change(text []byte) *Change {
	return &Change{Hash: textHash(text), Diff: udiff.Unified("in force", filepath.Base(s.file), string(s.inForce), string(text))}
}

func textHash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Follow has f called whenever what State returns may have changed, but for the
// counts. f must return at once; it may be called from several goroutines.
func (s *Source) Follow(f func()) { s.followers.add(f) }

// State returns what is in force, and what waits.
func (s *Source) State() RulesState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := RulesState{File: s.file, Text: string(s.inForce), Since: s.since, Pending: s.pending}
	if len(s.inForce) > 0 {
		state.Hash = textHash(s.inForce)
	}
	if s.broken != nil {
		state.Broken = s.broken.Error()
	}
	for _, p := range s.places {
		state.Counts = addCounts(state.Counts, p.book.Rules().Counts())
	}
	if s.loaded && len(s.places) > 0 {
		state.Mode = s.places[0].book.Mode()
		state.Fresh = state.Hash == "" && state.Pending == nil && s.broken == nil && !exists(s.file)
	}
	return state
}

func addCounts(all, more []Count) []Count {
	if all == nil {
		return more
	}
	for i := range min(len(all), len(more)) { // of the same file, in its order
		all[i].Matched += more[i].Matched
		if more[i].Last.After(all[i].Last) {
			all[i].Last = more[i].Last
		}
	}
	return all
}

// CodeLength is how many digits of a hash make the code that an operator types, 48
// bits. Others may be able to write what it is of, a rule file or a script that a
// command names: to find another text with the same code must take them longer
// than the operator takes between looking and typing.
const CodeLength = 12

// Code is what an operator types for what has this hash.
func Code(hash string) string { return hash[:min(CodeLength, len(hash))] }

// ErrOtherRules says that a file is not what the operator has seen of it.
var ErrOtherRules = errors.New("the rule file is not what was shown: look at the change again before accepting it")

// Accept puts a change into force that the operator has seen: hash is Change.Hash
// as it was shown, or at least CodeLength digits of it.
func (s *Source) Accept(hash string) error {
	defer s.followers.tell()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		return errors.New("no change of the rule file waits to be accepted")
	}
	text, err := s.read()
	if err != nil {
		return err
	}
	if now := textHash(text); len(hash) < CodeLength || len(hash) > len(now) || now[:len(hash)] != hash {
		s.pending = s.change(text)
		return ErrOtherRules
	}
	return s.enforce(text)
}

// followers are told of changes.
type followers struct {
	mu  sync.Mutex
	all []func()
}

func (f *followers) add(one func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, one)
}

func (f *followers) tell() {
	f.mu.Lock()
	all := slices.Clone(f.all)
	f.mu.Unlock()
	for _, one := range all {
		one()
	}
}

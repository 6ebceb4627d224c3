package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// What is asked of the rules in force, and how rules are added to them.

// Explain says what the rules in force, the grants and the approve mode say of an
// item, as its connection's book does. It decides and counts nothing.
func (s *Source) Explain(i Item) (Explanation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.places {
		if p.connection == i.Connection {
			return p.book.Explain(i), nil
		}
	}
	return Explanation{}, errNotServed
}

var errNotServed = errors.New("the item's connection is not served any more")

// Try says what would be said of an item with a rule more.
func (s *Source) Try(i Item, rule string) (Explanation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.try(i, s.with(rule))
}

func (s *Source) with(rule string) []byte {
	if len(s.inForce) == 0 {
		return []byte(rule)
	}
	return append(append(bytes.TrimRight(bytes.Clone(s.inForce), "\n"), "\n\n"...), rule...)
}

// try explains an item by a text, as its connection's book would.
func (s *Source) try(i Item, text []byte) (Explanation, error) {
	rules, err := s.parse(text)
	if err != nil {
		return Explanation{}, err
	}
	for n, p := range s.places {
		if p.connection == i.Connection {
			return rules[n].Explain(i), nil
		}
	}
	return Explanation{}, errNotServed
}

// Add puts a rule that allows an item at the end of the file and into force. It
// is refused, with nothing changed, where the file would not load, where the item
// would not be allowed by it, and while a change made outside waits to be seen.
func (s *Source) Add(i Item, rule string) error {
	defer s.followers.tell()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.untouched(); err != nil {
		return err
	}
	text := s.with(rule)
	why, err := s.try(i, text)
	if err != nil {
		return err
	}
	if why.Verdict != Allow {
		return fmt.Errorf("the rule does not allow this item, so it was not added: %s", why.Reason)
	}
	return s.replace(text)
}

// AddRules puts any number of rules, with tests of theirs, at the end of the file
// and into force: all of them, or none where the file would not load, where a test
// fails, and while a change made outside waits to be seen.
func (s *Source) AddRules(rules string) error {
	defer s.followers.tell()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loaded || len(s.places) == 0 {
		return errors.New("no connection is served, so there is nothing that rules could be for; nothing was added")
	}
	if err := s.untouched(); err != nil {
		return err
	}
	text := s.with(rules)
	if _, err := s.parse(text); err != nil {
		return fmt.Errorf("nothing was added: %w", err)
	}
	return s.replace(text)
}

// untouched says whether the file is what is in force, so that it can be added to.
func (s *Source) untouched() error {
	text, err := readRuleFile(s.file)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case !bytes.Equal(text, s.inForce):
		return errors.New("the rule file was changed outside Countersign; look at that change first, nothing was added")
	}
	return nil
}

// replace writes the file and puts it into force.
func (s *Source) replace(text []byte) error {
	if err := replaceFile(s.file, text); err != nil {
		return fmt.Errorf("nothing was added: %w", err)
	}
	return s.enforce(text)
}

// replaceFile writes a file wholly or not at all, readable by this user alone.
func replaceFile(name string, text []byte) (err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // a link stays one
	}
	temp, err := os.CreateTemp(filepath.Dir(name), ".rules-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			temp.Close()
			_ = os.Remove(temp.Name())
		}
	}()
	if _, err = temp.Write(text); err != nil {
		return err
	}
	if err = temp.Sync(); err != nil {
		return err
	}
	if err = temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}

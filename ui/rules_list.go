package ui

import (
	"slices"

	"countersign/worker/policy"
)

// ruleWhat is what an entry of the list of rules is.
type ruleWhat uint8

const (
	aTitle   ruleWhat = iota
	aChange           // a change of the file that waits
	aBroken           // a file that cannot be used
	aTry              // what would happen to…
	aRule             // in force
	aGrant            // what was granted
	aShipped          // can be switched on
)

// waits tells what the operator has to look at.
func waits(w ruleWhat) bool { return w == aChange || w == aBroken }

// ruleEntry is one row of the list. Its id stays the same as long as it is about
// the same thing.
type ruleEntry struct {
	what ruleWhat
	id   string
	n    int // in the list of its kind
}

const tryEntry = "try"

// restructure lists what there is now.
func (r *rules) restructure() {
	was := r.entries
	r.entries = r.known.entries()
	r.keepSelection()
	if slices.EqualFunc(was, r.entries, func(a, b ruleEntry) bool { return a.what == b.what && a.id == b.id }) {
		for row, id := range r.rows {
			if i := r.index(id); i >= 0 {
				row.set(r.face(r.entries[i]))
			}
		}
		if r.pointed != r.selected {
			r.point()
		}
		return
	}
	for i := range max(len(was), len(r.entries)) {
		h := rowHeight()
		if i < len(r.entries) && r.entries[i].what == aTitle {
			h = sectionHeight
		}
		r.list.SetItemHeight(i, h)
	}
	r.point()
	r.list.Refresh()
}

func (k rulesKnown) entries() []ruleEntry {
	var all []ruleEntry
	title := func(words string) { all = append(all, ruleEntry{aTitle, words, 0}) }
	if k.state.Broken != "" || k.state.Pending != nil {
		title("Waits for you")
	}
	if k.state.Broken != "" {
		all = append(all, ruleEntry{aBroken, "broken", 0})
	}
	if k.state.Pending != nil {
		all = append(all, ruleEntry{aChange, "change", 0})
	}
	if k.state.Fresh {
		all = append(all, k.granted()...)
	}
	title("Try them")
	all = append(all, ruleEntry{aTry, tryEntry, 0})
	if k.state.Fresh {
		all = append(all, k.offered()...)
	}
	if len(k.inForce) > 0 {
		title("In force")
	}
	for i, info := range k.inForce {
		all = append(all, ruleEntry{aRule, "rule/" + info.Name, i})
	}
	if !k.state.Fresh {
		all = append(all, k.granted()...)
	}
	if !k.state.Fresh && k.state.Mode != "" {
		all = append(all, k.offered()...)
	}
	return all
}

func (k rulesKnown) granted() []ruleEntry {
	var all []ruleEntry
	if len(k.grants) > 0 {
		all = append(all, ruleEntry{aTitle, "Granted for a session or for a while", 0})
	}
	for i, g := range k.grants {
		all = append(all, ruleEntry{aGrant, "grant/" + g.ID, i})
	}
	return all
}

// offered are the shipped rules that are not in force under their names.
func (k rulesKnown) offered() []ruleEntry {
	var all []ruleEntry
	set := ""
	for i, s := range k.shipped {
		if slices.ContainsFunc(k.inForce, func(o policy.RuleInfo) bool { return o.Name == s.Name }) {
			continue
		}
		if s.set != set {
			set = s.set
			all = append(all, ruleEntry{aTitle, set, 0})
		}
		all = append(all, ruleEntry{aShipped, "shipped/" + s.Name, i})
	}
	return all
}

func (r *rules) index(id string) int {
	return slices.IndexFunc(r.entries, func(e ruleEntry) bool { return e.what != aTitle && e.id == id })
}

// entry is the one that is selected.
func (r *rules) entry() (ruleEntry, bool) {
	if i := r.index(r.selected); i >= 0 {
		return r.entries[i], true
	}
	return ruleEntry{}, false
}

// keepSelection stays with what the operator has selected as long as it is there,
// and is else at the first there is; without a rule at the first that can be had,
// since that is what there is to do here.
func (r *rules) keepSelection() {
	if !r.offered && r.index(r.selected) >= 0 {
		return
	}
	for _, e := range r.entries {
		if e.what != aTitle && !(e.what == aTry && r.known.state.Fresh) {
			r.selected, r.offered = e.id, true
			return
		}
	}
}

// point shows in the list what is selected.
func (r *rules) point() {
	r.settling, r.pointed = true, r.selected
	defer func() { r.settling = false }()
	if i := r.index(r.selected); i >= 0 {
		r.list.Select(i)
	} else {
		r.list.UnselectAll()
	}
}

// picked is called when a row was clicked.
func (r *rules) picked(i int) {
	if r.settling || i >= len(r.entries) {
		return
	}
	r.u.window.present()
	if r.entries[i].what == aTitle {
		r.list.UnselectAll()
		r.point()
		return
	}
	r.selected, r.offered = r.entries[i].id, false
	r.showSelected()
}

func (r *rules) selectEntry(id string) {
	if r.index(id) >= 0 {
		r.selected, r.offered = id, false
		r.point()
		r.showSelected()
	}
}

func (r *rules) move(by int) {
	for i := r.index(r.selected) + by; i >= 0 && i < len(r.entries); i += by {
		if r.entries[i].what != aTitle {
			r.selectEntry(r.entries[i].id)
			return
		}
	}
}

// tapped is called when the picture of a row was clicked, which is a switch where
// the row is about a rule that can be switched on.
func (r *rules) tapped(row *ruleRow) {
	r.u.window.present()
	r.selectEntry(r.rows[row])
	r.toggle()
	r.enable()
}

// toggle chooses the shipped rule in view, or not.
func (r *rules) toggle() {
	e, ok := r.entry()
	if !ok || e.what != aShipped {
		return
	}
	name := r.known.shipped[e.n].Name
	if r.chosen[name] {
		delete(r.chosen, name)
	} else {
		r.chosen[name] = true
	}
	r.restructure()
	r.showSelected()
}

// chosenNames are the rules to be switched on, in the order in which they ship.
func (r *rules) chosenNames() (names []string) {
	for _, s := range r.known.shipped {
		if r.chosen[s.Name] {
			names = append(names, s.Name)
		}
	}
	return names
}

// forgetChosen drops what came into force meanwhile.
func (r *rules) forgetChosen() {
	for _, info := range r.known.inForce {
		delete(r.chosen, info.Name)
	}
}

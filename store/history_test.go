package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"countersign/worker"
)

// find returns the numbers of the holds on one page.
func find(t *testing.T, s *Store, q worker.HistoryQuery) []worker.HoldID {
	t.Helper()
	found, err := s.Find(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	var ids []worker.HoldID
	for _, h := range found {
		ids = append(ids, h.ID)
	}
	return ids
}

func TestTheHistoryIsPagedNewestFirst(t *testing.T) {
	s := opened(t)
	for i := range 25 {
		open(t, s, claimed(fmt.Sprint("i", i), "go test"))
	}
	for _, text := range []string{"", "go"} {
		var all []worker.HoldID
		q := worker.HistoryQuery{Text: text, Limit: 10}
		for {
			page := find(t, s, q)
			if len(page) == 0 {
				break
			}
			all = append(all, page...)
			q.Before = page[len(page)-1]
		}
		if len(all) != 25 || all[0] != 25 || all[24] != 1 {
			t.Errorf("%q: got %v", text, all)
		}
		if n, err := s.Count(t.Context(), q); n != 25 || err != nil {
			t.Errorf("%q: count %d, %v", text, n, err)
		}
	}
}

func TestAPageHasALimit(t *testing.T) {
	s := opened(t)
	for i := range maxLimit + 1 {
		open(t, s, claimed(fmt.Sprint("i", i), "c"))
	}
	if n := len(find(t, s, worker.HistoryQuery{})); n != defaultLimit {
		t.Errorf("%d by default", n)
	}
	if n := len(find(t, s, worker.HistoryQuery{Limit: 1 << 30})); n != maxLimit {
		t.Errorf("%d at most", n)
	}
}

func TestTheHistoryIsFiltered(t *testing.T) {
	s := opened(t)
	for i := range 6 {
		h := claimed(fmt.Sprint("i", i), "c")
		h.Item.SessionID = []string{"s0", "s1"}[i%2]
		h.Item.Kind = []string{"exec", "read", "list"}[i%3]
		h.OpenedAt = noon.Add(time.Duration(i) * time.Hour)
		ta := open(t, s, h)
		if i < 2 {
			ta.must(worker.StepDecided, nil, func(f *worker.Facts) { f.Decision = worker.Declined })
		}
	}
	tests := []struct {
		q    worker.HistoryQuery
		want []worker.HoldID
	}{
		{worker.HistoryQuery{Session: "s1"}, []worker.HoldID{6, 4, 2}},
		{worker.HistoryQuery{Session: "s"}, nil},
		{worker.HistoryQuery{Kind: "read"}, []worker.HoldID{5, 2}},
		{worker.HistoryQuery{Status: worker.WordDeclined}, []worker.HoldID{2, 1}},
		{worker.HistoryQuery{Since: noon.Add(4 * time.Hour)}, []worker.HoldID{6, 5}},
		{worker.HistoryQuery{Until: noon.Add(time.Hour)}, []worker.HoldID{1}},
		{worker.HistoryQuery{Session: "s0", Kind: "exec", Status: worker.WordDeclined}, []worker.HoldID{1}},
		{worker.HistoryQuery{Text: "s1", Since: noon.Add(2 * time.Hour)}, []worker.HoldID{6, 4}},
		{worker.HistoryQuery{Text: "c", Kind: "list", Status: worker.WordWaiting}, []worker.HoldID{6, 3}},
	}
	for _, tt := range tests {
		if got := find(t, s, tt.q); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v: got %v, want %v", tt.q, got, tt.want)
		}
		if n, err := s.Count(t.Context(), tt.q); n != len(tt.want) || err != nil {
			t.Errorf("%+v: count %d, %v", tt.q, n, err)
		}
	}
}

func TestSearchFindsWordsAndTheirBeginnings(t *testing.T) {
	s := opened(t)
	add := func(kind, payload string) {
		h := claimed(fmt.Sprint("i", payload), "")
		h.Item.Kind, h.Item.Payload = kind, json.RawMessage(payload)
		open(t, s, h)
	}
	add("exec", `{"command":"go test ./internal/store-keeper","cwd":"backend"}`) // 1
	add("write", `{"path":"docs/Überblick.md","content":"Straße und Café"}`)     // 2
	add("custom_tool", `{"tool_name":"deploy","input":{"hidden":"yes"}}`)        // 3
	add("list", `not an object`)                                                 // 4
	ta := open(t, s, claimed("ran", "make")).started()                           // 5
	ta.must(worker.StepFinished, outcome(), finish)

	all := []worker.HoldID{5, 4, 3, 2, 1}
	for text, want := range map[string][]worker.HoldID{
		"test":                  {1},
		"TES":                   {1},
		"te go":                 {1},
		"go make":               nil,
		"est":                   nil,
		"./internal/store-keep": {1},
		"internal/keeper":       nil, // one piece is a phrase
		"internal keeper":       {1},
		"backend":               {1},
		"uberblick":             {2},
		"Über":                  {2},
		"cafe":                  {2},
		"straße":                {2},
		"deploy":                {3},
		"hidden":                nil,
		"needle":                {5},
		"make needle":           {5},
		"sess_1":                all,
		"":                      all,
		" \t- * \" ' ":          all,
	} {
		if got := find(t, s, worker.HistoryQuery{Text: text}); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestNothingTypedIsASyntaxError(t *testing.T) {
	s := opened(t)
	open(t, s, claimed("i", "c"))
	for _, text := range []string{
		`"`, `""`, `"a`, `a"b`, `*`, `a*`, `*a`, `-a`, `a -b`, `NOT`, `a NOT`, `OR`, `AND AND`, `NEAR/3`, `a NEAR b`,
		`(`, `)`, `(a`, `asked:c`, `:`, `search MATCH`, `'; DROP TABLE holds; --`, "\x00", "a\x00b", "\xff\xfe", "a\xffb",
		"🙂", "a🙂b", "👩‍👩‍👧", "日本語", "\u200b", "\u0301", "ª", "²", "Ⅷ", "\U0001E900", "\uFFFD", "^a", "a^",
		strings.Repeat("a ", 5000), strings.Repeat("a", 5000), strings.Repeat("é", 5000), strings.Repeat("a/", 5000),
	} {
		find(t, s, worker.HistoryQuery{Text: text})
		if _, err := s.Count(t.Context(), worker.HistoryQuery{Text: text, Kind: text, Session: text, Status: text}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzSearch(f *testing.F) {
	s := opened(f)
	if _, err := s.Open(f.Context(), claimed("i", "go test"), ""); err != nil {
		f.Fatal(err)
	}
	f.Add(`go "te`)
	f.Add("NEAR/2 \x00 (a OR -b) ^c:d*")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := s.Find(t.Context(), worker.HistoryQuery{Text: text}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func TestListsCarryNoLargePayloadsAndNoResults(t *testing.T) {
	s := opened(t)
	large := claimed("large", "echo "+strings.Repeat("é", briefLimit))
	ta := open(t, s, large).started()
	ta.must(worker.StepFinished, outcome(), finish)
	odd := claimed("odd", "")
	odd.Item.Payload = json.RawMessage(`"` + strings.Repeat("x", briefLimit) + `"`)
	open(t, s, odd)

	found, err := s.Find(t.Context(), worker.HistoryQuery{})
	if err != nil || len(found) != 2 {
		t.Fatalf("%d holds, %v", len(found), err)
	}
	if got := string(found[0].Item.Payload); got != `{}` {
		t.Errorf("a stand-in for no object: %s", got)
	}
	var stand struct{ Command string }
	if err := json.Unmarshal(found[1].Item.Payload, &stand); err != nil {
		t.Fatal(err)
	}
	if n := len(stand.Command); n > headLimit || n < headLimit-1 || !strings.HasPrefix(stand.Command, "echo éé") {
		t.Errorf("a stand-in of %d bytes", n)
	}
	if o := found[1].Outcome; o == nil || o.Result != nil || o.Head != outcome().Head {
		t.Errorf("outcome in a list: %+v", o)
	}
	whole := ta.hold()
	if string(whole.Item.Payload) != string(large.Item.Payload) || string(whole.Outcome.Result) != string(outcome().Result) {
		t.Error("the hold itself is not whole")
	}
}

func TestASearchThatIsGivenUpSaysSo(t *testing.T) {
	s := opened(t)
	open(t, s, claimed("i", "c"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Find(ctx, worker.HistoryQuery{Text: "c"}); !errors.Is(err, context.Canceled) {
		t.Errorf("find: %v", err)
	}
	if _, err := s.Count(ctx, worker.HistoryQuery{Text: "c"}); !errors.Is(err, context.Canceled) {
		t.Errorf("count: %v", err)
	}
}

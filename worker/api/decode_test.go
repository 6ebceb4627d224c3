package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestAnItemIsReadInEitherSpelling(t *testing.T) {
	at := time.Date(2026, 9, 28, 6, 3, 0, 0, time.UTC)
	want := Item{
		ID: "work_1", SessionID: "subsess_a.b#sub_c", Kind: "exec", Payload: json.RawMessage(`{ "command" : "x" }`),
		CreatedAt: at, ClaimedAt: at.Add(time.Second), ClaimStatus: "claimed",
	}
	for _, body := range []string{
		`{"id":"work_1","sessionId":"subsess_a.b#sub_c","kind":"exec","payload":{ "command" : "x" },"status":"claimed",
		  "createdAt":"2026-09-28 06:03:00","claimedAt":"2026-09-28T08:03:01+02:00","completedAt":null,"secret":"s","new":[1]}`,
		`{"id":"work_1","session_id":"subsess_a.b#sub_c","kind":"exec","payload":{ "command" : "x" },"status":"claimed",
		  "created_at":"2026-09-28T06:03:00Z","claimed_at":"2026-09-28 06:03:01"}`,
		`{"id":"work_1","ID":"other","sessionId":null,"session_id":"subsess_a.b#sub_c","kind":"exec","KIND":"write",
		  "Payload":{"command":"smuggled"},"payload":{ "command" : "x" },"PAYLOAD":1,"status":"claimed",
		  "createdAt":"2026-09-28T06:03:00","claimedAt":"2026-09-28T06:03:01Z"}`,
	} {
		got, err := decodeItem([]byte(body))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", body, got, err, want)
		}
	}
}

func TestOddFieldsOfAnItemAreEmptyAndItStaysOurs(t *testing.T) {
	for _, body := range []string{
		`{"id":"w"}`,
		`{"id":"w","kind":7,"payload":null,"sessionId":{},"createdAt":1759039380,"claimedAt":"yesterday","status":[]}`,
		`{"id":"w","createdAt":"","claimedAt":null}`,
	} {
		if got, err := decodeItem([]byte(body)); err != nil || !reflect.DeepEqual(got, Item{ID: "w"}) {
			t.Errorf("%s: got %+v, %v", body, got, err)
		}
	}
}

func TestAPayloadIsKeptByteForByte(t *testing.T) {
	for _, payload := range []string{
		`{"command":"a\u0000\u2028<b>"}`, `{"a":1,"a":2}`, "{\"a\":\"\xff\xfe\"}", `[ 1 ,2 ]`, `"x"`, `12345678901234567890.10`, `false`,
	} {
		got, err := decodeItem([]byte(`{"id":"w","payload": ` + payload + ` }`))
		if err != nil || string(got.Payload) != payload {
			t.Errorf("%q: got %q, %v", payload, got.Payload, err)
		}
	}
}

func TestABigItemIsClaimedWhole(t *testing.T) {
	payload := `{"command":"` + strings.Repeat("x", 2<<20) + `"}`
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"id":"w","payload":`+payload+`}`)
	}))
	defer h.Close()
	c, err := New(Options{Origin: h.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	item, found, err := c.Claim(t.Context(), "w")
	if err != nil || !found || string(item.Payload) != payload {
		t.Errorf("got %d bytes, %v, %v", len(item.Payload), found, err)
	}
}

func FuzzDecodeItem(f *testing.F) {
	f.Add([]byte(`{"id":"w","sessionId":"s","kind":"exec","payload":{"command":"x"},"createdAt":"2026-09-28 06:03:00"}`))
	f.Add([]byte("{\"id\":\"\xff\",\"payload\":\"\xc3\x28\"}"))
	f.Add([]byte(`{"ID":"w"}`))
	f.Add([]byte(`null`))
	f.Add([]byte(strings.Repeat(`{"id":`, 200)))
	f.Fuzz(func(t *testing.T, body []byte) {
		item, err := decodeItem(body)
		if err != nil {
			return
		}
		if item.ID == "" || !json.Valid(body) {
			t.Errorf("an item from %q: %+v", body, item)
		}
		if item.Payload != nil && (!json.Valid(item.Payload) || !bytes.Contains(body, item.Payload)) {
			t.Errorf("payload %q is not in %q", item.Payload, body)
		}
	})
}

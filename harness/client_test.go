package harness

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"countersign/worker/api/wire"
)

func TestAClientTellsAHarnessFromAnotherServer(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"a page":          func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
		"a proxy's error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) },
		"JSON of another": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); w.Write([]byte(`{"message":"x"}`)) },
		"a redirect":      func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"an answer cut short": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte(`{`))
		},
	} {
		server := httptest.NewServer(handler)
		c := NewClient(server.URL+"/", "", server.Client())
		if _, err := c.Session(t.Context(), "sess_1"); err == nil || err.Error() == "" {
			t.Errorf("%s: taken for an answer", name)
		}
		_, err := c.Await(t.Context(), "work_1", 0)
		if _, ok := errors.AsType[*AwaitError](err); ok || err == nil {
			t.Errorf("%s: taken for the end of a wait: %v", name, err)
		}
		server.Close()
	}
}

func TestAClientSendsItsKeyAndTellsARefusal(t *testing.T) {
	s := serve(t, Options{APIKeys: []string{"api"}})
	s.makes("sess_1", "env_a")
	id := s.enqueues("sess_1")
	wants(t, "claim", s.claims("w1"), 200, "")
	wants(t, "complete", s.completes(id, "w1"), 200, "")
	if got, err := s.client.Await(t.Context(), id, time.Minute); err != nil || string(got.Result) != `{"ok":true}` || got.Failed {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := NewClient(s.url, "wrong", http.DefaultClient).WorkItems(t.Context(), "env_a")
	if answer, ok := errors.AsType[*AnswerError](err); !ok || answer.HTTPStatus != http.StatusUnauthorized || answer.Message == "" {
		t.Errorf("a wrong key: %v", err)
	}
	if _, err := s.client.Enqueue(t.Context(), "sess_1", wire.KindExec, func() {}); err == nil {
		t.Error("enqueued what is no JSON")
	}
}

func TestAClientOfNobodySaysSo(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	if _, err := NewClient(server.URL, "", nil).Session(t.Context(), "sess_1"); err == nil {
		t.Error("answered by nobody")
	}
	if _, err := NewClient("http://bad host", "", nil).Session(t.Context(), "sess_1"); err == nil {
		t.Error("asked an origin that is none")
	}
}

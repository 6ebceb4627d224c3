package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zalando/go-keyring"
)

func none(string, string) (string, error) { return "", keyring.ErrNotFound }

func find(t *testing.T, given Credentials, ring Keyring, dir string) (Credentials, string, error) {
	t.Helper()
	var log bytes.Buffer
	c := Connection{Name: "local", Harness: "http://127.0.0.1:3000", EnvironmentID: "env_1"}
	found, err := FindCredentials(context.Background(), c, given, ring, dir, slog.New(slog.NewTextHandler(&log, nil)))
	return found, log.String(), err
}

func TestCredentialsComeFromFlagsThenKeyringThenFile(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, CredentialsFile), "[local]\nenvironment-key = \"file-env\"\napi-key = \"file-api\"\n")
	ring := func(service, user string) (string, error) {
		if service == "countersign" && user == "http://127.0.0.1:3000 env_1 api-key" {
			return "ring-api", nil
		}
		return "", keyring.ErrNotFound
	}
	for _, c := range []struct {
		given Credentials
		ring  Keyring
		want  Credentials
	}{
		{Credentials{}, none, Credentials{EnvironmentKey: "file-env", APIKey: "file-api"}},
		{Credentials{}, ring, Credentials{EnvironmentKey: "file-env", APIKey: "ring-api"}},
		{Credentials{EnvironmentKey: "e", APIKey: "a"}, ring, Credentials{EnvironmentKey: "e", APIKey: "a"}},
	} {
		if got, _, err := find(t, c.given, c.ring, dir); err != nil || got != c.want {
			t.Errorf("got %q %q, %v", got.EnvironmentKey, got.APIKey, err)
		}
	}
}

func TestACredentialsFileThatOthersCanReadIsRefusedWithTheChmod(t *testing.T) {
	path := filepath.Join(t.TempDir(), CredentialsFile)
	put(t, path, "")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	_, _, err := find(t, Credentials{}, none, filepath.Dir(path))
	if err == nil || !strings.Contains(err.Error(), "run: chmod 0600 "+path) {
		t.Errorf("got %v", err)
	}
}

func TestAWrongCredentialsFileIsToldWithoutItsContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), CredentialsFile)
	for _, text := range []string{"[local]\napi-key = s3cr3t\n", "[local]\napi-key = [\"s3cr3t\"]\n", "[local]\nkey = \"s3cr3t\"\n"} {
		put(t, path, text)
		_, _, err := find(t, Credentials{}, none, filepath.Dir(path))
		if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestAWrongKeyIsNamedWithItsLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), CredentialsFile)
	put(t, path, "[\"127.0.0.1:3000\"]\napi-key = \"s3cr3t\"\napi_key = \"s3cr3t\"\n")
	_, _, err := find(t, Credentials{}, none, filepath.Dir(path))
	if err == nil || !strings.HasPrefix(err.Error(), path+`:3: "127.0.0.1:3000".api_key: not a setting`) {
		t.Errorf("got %v", err)
	}
}

func TestATableOfNoConnectionIsNamedWithItsLine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, CredentialsFile)
	if strays := StrayCredentials(dir, []string{"mine"}); len(strays) != 0 {
		t.Errorf("of no file: %v", strays)
	}
	put(t, path, "[mine]\napi-key = \"s3cr3t\"\n\n[\"mein:1\"]\napi-key = \"s3cr3t\"\n")
	strays := StrayCredentials(dir, []string{"mine", "other"})
	if len(strays) != 1 || strays[0].Error() != path+`:4: ["mein:1"]: no connection has this name, so its keys are not used; expected one of mine, other` {
		t.Errorf("got %v", strays)
	}
	if strays := StrayCredentials(dir, []string{"mine", "mein:1"}); len(strays) != 0 {
		t.Errorf("of connections: %v", strays)
	}
}

func TestABrokenKeyringIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, CredentialsFile), "[local]\napi-key = \"file-api\"\n")
	broken := func(string, string) (string, error) { return "", errors.New("no such service") }
	got, log, err := find(t, Credentials{}, broken, dir)
	if err != nil || got.APIKey != "file-api" || !strings.Contains(log, "no such service") {
		t.Errorf("got %q, %v, log %s", got.APIKey, err, log)
	}
}

func TestAKeyringThatNeverAnswersIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		_, log, err := find(t, Credentials{}, func(string, string) (string, error) { <-hang; return "late", nil }, t.TempDir())
		if err != nil || !strings.Contains(log, "did not answer in time") {
			t.Errorf("got %v, log %s", err, log)
		}
	})
}

func TestCredentialsDoNotPrint(t *testing.T) {
	c := Credentials{EnvironmentKey: "s3cr3t", APIKey: "s3cr3t"}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "c", c, "p", &c)
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s", c, c, c, &c), log.String()} {
		if strings.Contains(s, "s3cr3t") {
			t.Errorf("printed %s", s)
		}
	}
}

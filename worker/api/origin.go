package api

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// ParseOrigin checks the address of a harness and returns it in its one
// spelling: scheme and host in lower case, no default port, no trailing slash.
// Two addresses with the same spelling are the same harness. An address with a
// user name, a query or a fragment is refused; no error repeats a password.
func ParseOrigin(s string) (string, error) {
	u, err := parseOrigin(s)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

func parseOrigin(s string) (*url.URL, error) {
	if s == "" {
		return nil, errors.New("the harness address is empty: expected scheme://host[:port]")
	}
	if strings.ContainsAny(s, "@") {
		return nil, errors.New("the harness address must not contain a user name or password (@): use an API key")
	}
	u, err := url.Parse(s)
	if !strings.Contains(s, "://") {
		return nil, withoutScheme(s, u)
	}
	if err != nil {
		return nil, fmt.Errorf("harness address %q: %w", s, withoutURL(err))
	}
	if err := checkOrigin(u); err != nil {
		return nil, fmt.Errorf("harness address %q: %w", s, err)
	}
	scheme := strings.ToLower(u.Scheme)
	host := strings.ToLower(u.Host)
	host = strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
	clean := path.Clean("/" + u.Path)
	if clean == "/" {
		clean = ""
	}
	return &url.URL{Scheme: scheme, Host: host, Path: clean}, nil
}

// withoutScheme says what is missing from an address such as 127.0.0.1:3000, of
// which the URL parser complains in words of its own, or takes the host for a
// scheme. u is nil where it could not be parsed.
func withoutScheme(s string, u *url.URL) error {
	expected := "expected http or https, such as http://" + strings.TrimPrefix(s, "//")
	if u != nil && u.Scheme != "" {
		return fmt.Errorf("harness address %q: scheme %q: %s", s, u.Scheme, expected)
	}
	return fmt.Errorf("harness address %q: the scheme is missing: %s", s, expected)
}

func checkOrigin(u *url.URL) error {
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
	default:
		return fmt.Errorf("scheme %q: expected http or https", u.Scheme)
	}
	if u.Hostname() == "" {
		return errors.New("the host is missing")
	}
	if strings.HasSuffix(u.Host, ":") {
		return errors.New("the port after the colon is missing")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("port %s: expected 1 to 65535", port)
		}
	}
	if u.RawQuery != "" || u.ForceQuery {
		return errors.New("a query (?) does not belong in it")
	}
	if u.Fragment != "" {
		return errors.New("a fragment (#) does not belong in it")
	}
	return nil
}

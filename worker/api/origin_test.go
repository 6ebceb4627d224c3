package api_test

import (
	"strings"
	"testing"

	"countersign/worker/api"
)

func TestAnAddressWithoutASchemeIsToldWithOne(t *testing.T) {
	for _, in := range []string{"127.0.0.1:3000", "localhost:3000", "[::1]:3000", "//127.0.0.1:3000", "127.0.0.1"} {
		_, err := api.ParseOrigin(in)
		if err == nil || !strings.Contains(err.Error(), "expected http or https, such as http://"+strings.TrimPrefix(in, "//")) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

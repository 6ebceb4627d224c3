package assets

import (
	"bytes"
	"image"
	"image/png"
	"testing"
)

func decode(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestTheAppIconIsALargePNG(t *testing.T) {
	if b := decode(t, Icon()).Bounds(); b.Dx() != 512 || b.Dy() != 512 {
		t.Errorf("icon is %v, want 512 by 512", b)
	}
}

func TestTrayStatesDifferInSilhouetteAndNotOnlyInColour(t *testing.T) {
	states := TrayStates()
	for i, a := range states {
		for _, b := range states[:i] {
			if n := differing(decode(t, Tray(a)), decode(t, Tray(b))); n < 64*64/20 {
				t.Errorf("%s and %s differ in %d of %d points only, their colours left out", a, b, n, 64*64)
			}
		}
	}
}

// differing counts the points that are opaque or light in one picture only.
func differing(a, b image.Image) int {
	n := 0
	for y := range 64 {
		for x := range 64 {
			if inked(a, x, y) != inked(b, x, y) {
				n++
			}
		}
	}
	return n
}

// inked tells body from white glyph and from nothing.
func inked(img image.Image, x, y int) bool {
	r, _, b, alpha := img.At(x, y).RGBA()
	return alpha > 0x8000 && (r < 0xe000 || b < 0xe000)
}

package ui

import (
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"countersign/worker"
	"countersign/worker/execute"
)

var update = flag.Bool("update", false, "write the pictures in testdata anew, to be looked at before they are kept")

// TestThePictureOfADecision holds the decision view of hostile texts to pictures
// that somebody has looked at. Only letters of the fonts that are built in are in
// them: any other would be drawn in one of the machine's.
func TestThePictureOfADecision(t *testing.T) {
	for name, v := range map[string]worker.View{
		"ansi":        execItem(1, "ls \x1b[2K\x1b[1A\x1b[8mrm notes\x1b[0m; cat a\x07\x08\x08"),
		"bidi":        execItem(1, "echo '\u202Etxt.sh\u2066 safe'; cat \u2067a"),
		"zero-width":  execItem(1, "cat not\u200bes\u00ad.txt\ufeff && l\u200ds"),
		"blanks":      execItem(1, "ls"+strings.Repeat(" ", 200)+"; rm notes"),
		"scripts":     execItem(1, "c\u0430t notes && \u0441\u0430\u0442 notes"),
		"long-line":   execItem(1, "echo "+strings.Repeat("0123456789", 120)+" > out"),
		"300-parts":   execItem(1, strings.Repeat("go test ./a && ", 299)+"kubectl get pods"),
		"substitutes": execItem(1, "A=1 make -n \"$X\" $(cat list) < in > out &\nif true; then `ls`; fi # done"),
		"binary":      writeItem(1, "a.bin", "\x00\x01\x02ELF\x7f"),
		"crlf":        writeItem(1, "a.txt", "one\r\ntwo\r\nthree\nfour\r\n"),
		"new-file":    writeItem(1, "b.sh", "#!/bin/sh\n\techo 'x'\t# y\n"),
		"read":        readItem(1, "a.txt"),
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			v := explained(t, v)
			files := map[string]string{"a.bin": "\x00old", "a.txt": "one\ntwo\nthree\n"}
			st.desk.previews = map[worker.HoldID]execute.Preview{1: previewed(t, v, files)}
			st.window.win.Resize(fyne.NewSize(880, 600))
			st.show(waitingItems(v))
			if v.Item.Kind != "exec" {
				st.until("what is on the disk", func() bool { return len(st.window.queue.detail.found.words) > 0 })
			}
			st.pass(time.Second)
			st.wgIdle()
			st.golden(name)
		})
	}
}

// golden compares the detail with a picture in testdata. Pixels may differ a
// little, as machines round in other ways.
func (st *stage) golden(name string) {
	st.t.Helper()
	d := st.window.queue.detail
	at, size := st.App.Driver().AbsolutePositionForObject(d.page), d.page.Size()
	got := webSafe(st.window.win.Canvas().Capture(), image.Rect(0, 0, int(size.Width), int(size.Height)).Add(image.Pt(int(at.X), int(at.Y))))
	file := filepath.Join("testdata", name+".png")
	if *update {
		writePicture(st.t, file, got)
		return
	}
	f, err := os.Open(file)
	if err != nil {
		st.t.Fatal(err)
	}
	defer f.Close()
	want, err := png.Decode(f)
	if err != nil {
		st.t.Fatal(err)
	}
	if differ := different(want, got); differ != "" {
		other := filepath.Join(os.TempDir(), "countersign-ui-"+name+".png")
		writePicture(st.t, other, got)
		st.t.Errorf("%s is drawn otherwise: %s. The picture of now is %s; go test -run %s -update keeps it.",
			name, differ, other, "TestThePictureOfADecision")
	}
}

// webSafe is a part of a picture in few colours, so that the files are small. They
// are six steps each of red, green and blue, of which the nearest is easily found.
func webSafe(from image.Image, part image.Rectangle) *image.Paletted {
	whole, ok := from.(*image.NRGBA)
	if !ok {
		whole = image.NewNRGBA(from.Bounds())
		draw.Draw(whole, whole.Bounds(), from, from.Bounds().Min, draw.Src)
	}
	step := func(v uint8) uint8 { return uint8((int(v) + 0x19) / 0x33) }
	to := image.NewPaletted(image.Rect(0, 0, part.Dx(), part.Dy()), palette.WebSafe)
	for y := range part.Dy() {
		row := whole.Pix[whole.PixOffset(part.Min.X, part.Min.Y+y):][:4*part.Dx()]
		for x := range part.Dx() {
			to.Pix[to.PixOffset(x, y)] = 36*step(row[4*x]) + 6*step(row[4*x+1]) + step(row[4*x+2])
		}
	}
	return to
}

func different(want image.Image, got *image.Paletted) string {
	kept, ok := want.(*image.Paletted)
	switch {
	case !ok || len(kept.Palette) > len(palette.WebSafe):
		return "it is not of these colours"
	case want.Bounds() != got.Bounds():
		return fmt.Sprintf("it is %v, not %v", got.Bounds(), want.Bounds())
	}
	wrong := 0
	for i, p := range got.Pix {
		if q := kept.Pix[i]; kept.Palette[q] != got.Palette[p] && far(kept.Palette[q], got.Palette[p]) {
			wrong++
		}
	}
	if wrong > len(got.Pix)/10_000 {
		return fmt.Sprintf("%d pixels are others", wrong)
	}
	return ""
}

// far tells shades apart that are not neighbours in the palette.
func far(a, b color.Color) bool {
	r, g, bl, _ := a.RGBA()
	r2, g2, bl2, _ := b.RGBA()
	apart := func(a, b uint32) bool { return max(a, b)-min(a, b) > 60<<8 }
	return apart(r, r2) || apart(g, g2) || apart(bl, bl2)
}

func writePicture(t *testing.T, file string, img image.Image) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(f, img); err != nil {
		t.Fatal(err)
	}
}

// Command gen draws the icons. Shapes are distances: negative inside, positive
// outside, in a square of 64 units, so that one drawing serves every size.
package main

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"

	"countersign/assets"
)

type shape func(x, y float64) float64

type layer struct {
	shape  shape
	colour color.NRGBA
}

var (
	white = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	slate = color.NRGBA{0x4a, 0x5a, 0x6a, 0xff}
	blue  = color.NRGBA{0x1f, 0x5f, 0xbf, 0xff}
	green = color.NRGBA{0x1a, 0x7f, 0x37, 0xff}
	grey  = color.NRGBA{0x6e, 0x6e, 0x76, 0xff}
	red   = color.NRGBA{0xc6, 0x28, 0x28, 0xff}
	navy  = color.NRGBA{0x17, 0x3f, 0x72, 0xff}
	pale  = color.NRGBA{0x9f, 0xc3, 0xee, 0xff}
)

func main() {
	for _, s := range assets.TrayStates() {
		save(fmt.Sprintf("tray-%s.png", s), draw(64, tray(s)))
	}
	save("Icon.png", draw(512, icon()))
}

// tray returns a silhouette of its own for each state, with a white rim that
// sets it off from a dark panel.
func tray(s assets.TrayState) []layer {
	check := stroke(4, pt{19, 33}, pt{28, 42}, pt{46, 22})
	switch s {
	case assets.Idle:
		return badge(circle(32, 32, 27), slate, check)
	case assets.Running:
		return badge(grow(polygon(pt{16, 10}, pt{54, 32}, pt{16, 54}), 4), green, nil)
	case assets.Waiting:
		bubble := union(box(32, 27, 28, 22, 10), polygon(pt{14, 42}, pt{34, 42}, pt{16, 61}))
		ask := union(stroke(3.8, arc(32, 20, 8, -200, 75)...), circle(32, 40.5, 4.2))
		return badge(bubble, blue, ask)
	case assets.Paused:
		return badge(union(box(19, 32, 9, 25, 4), box(45, 32, 9, 25, 4)), slate, nil)
	case assets.Disconnected:
		ring := func(x, y float64) float64 { return math.Abs(math.Hypot(x-32, y-32)-22) - 5 }
		return badge(union(ring, stroke(4.6, pt{12, 52}, pt{52, 12})), grey, nil)
	}
	mark := union(stroke(4, pt{32, 24}, pt{32, 38}), circle(32, 49, 4.4))
	return badge(grow(polygon(pt{32, 8}, pt{57, 54}, pt{7, 54}), 4), red, mark)
}

// icon is a page with a line of text, signed and signed again.
func icon() []layer {
	return []layer{
		{box(32, 32, 30, 30, 13), navy},
		{stroke(1.7, pt{17, 17}, pt{47, 17}), pale},
		{stroke(1.7, pt{17, 25}, pt{36, 25}), pale},
		{stroke(2.4, pt{15, 39}, pt{22, 46}, pt{35, 31}), pale},
		{stroke(3.2, pt{26, 40}, pt{34, 48}, pt{50, 28}), white},
	}
}

func badge(body shape, colour color.NRGBA, glyph shape) []layer {
	layers := []layer{{grow(body, 2.5), white}, {body, colour}}
	if glyph != nil {
		layers = append(layers, layer{glyph, white})
	}
	return layers
}

type pt struct{ x, y float64 }

func circle(cx, cy, r float64) shape {
	return func(x, y float64) float64 { return math.Hypot(x-cx, y-cy) - r }
}

// box is a rectangle around (cx, cy) with half sides w and h and round corners.
func box(cx, cy, w, h, r float64) shape {
	return func(x, y float64) float64 {
		dx, dy := math.Abs(x-cx)-w+r, math.Abs(y-cy)-h+r
		return math.Hypot(max(dx, 0), max(dy, 0)) + min(max(dx, dy), 0) - r
	}
}

// stroke is a line through the points, r thick to each side, with round ends.
func stroke(r float64, points ...pt) shape {
	return func(x, y float64) float64 {
		d := math.Inf(1)
		for i := 1; i < len(points); i++ {
			d = min(d, segment(x, y, points[i-1], points[i]))
		}
		return d - r
	}
}

func segment(x, y float64, a, b pt) float64 {
	dx, dy := b.x-a.x, b.y-a.y
	t := ((x-a.x)*dx + (y-a.y)*dy) / (dx*dx + dy*dy)
	t = min(max(t, 0), 1)
	return math.Hypot(x-a.x-t*dx, y-a.y-t*dy)
}

// polygon is the inside of the closed line through the points.
func polygon(points ...pt) shape {
	return func(x, y float64) float64 {
		d, inside := math.Inf(1), false
		for i, b := range points {
			a := points[(i+len(points)-1)%len(points)]
			d = min(d, segment(x, y, a, b))
			if (a.y > y) != (b.y > y) && x < (b.x-a.x)*(y-a.y)/(b.y-a.y)+a.x {
				inside = !inside
			}
		}
		if inside {
			return -d
		}
		return d
	}
}

// arc returns points on a circle between two angles in degrees, and the foot
// of a question mark below them.
func arc(cx, cy, r, from, to float64) []pt {
	var points []pt
	for a := from; a <= to; a += 5 {
		points = append(points, pt{cx + r*math.Cos(a*math.Pi/180), cy + r*math.Sin(a*math.Pi/180)})
	}
	return append(points, pt{cx, cy + r + 4})
}

func union(a, b shape) shape {
	return func(x, y float64) float64 { return min(a(x, y), b(x, y)) }
}

func grow(s shape, by float64) shape {
	return func(x, y float64) float64 { return s(x, y) - by }
}

// draw paints the layers, the first at the bottom, with smooth edges.
func draw(size int, layers []layer) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, size, size))
	unit := 64 / float64(size)
	for py := range size {
		for px := range size {
			x, y := (float64(px)+0.5)*unit, (float64(py)+0.5)*unit
			c := color.NRGBA{}
			for _, l := range layers {
				c = over(c, l.colour, min(max(0.5-l.shape(x, y)/unit, 0), 1))
			}
			img.SetNRGBA(px, py, c)
		}
	}
	return img
}

func over(under, top color.NRGBA, cover float64) color.NRGBA {
	ua, ta := float64(under.A)/255*(1-cover), cover
	a := ua + ta
	if a == 0 {
		return color.NRGBA{}
	}
	mix := func(u, t uint8) uint8 { return uint8((float64(u)*ua+float64(t)*ta)/a + 0.5) }
	return color.NRGBA{mix(under.R, top.R), mix(under.G, top.G), mix(under.B, top.B), uint8(a*255 + 0.5)}
}

func save(name string, img image.Image) {
	f, err := os.Create(name)
	if err == nil {
		err = png.Encode(f, img)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

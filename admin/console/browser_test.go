package console_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"gotycoon/internal/needs"
)

const (
	patience = 60 * time.Second // for what should happen at once
	glance   = 40 * time.Millisecond
)

// browser is a tab that shows the console of one server.
type browser struct {
	t      *testing.T
	ctx    context.Context
	origin string
	dir    string // of the screenshots

	mu    sync.Mutex // protects wrong and gone
	wrong []string   // errors in the console, violations of the policy, requests to other hosts
	gone  bool       // the server is stopped on purpose: failed requests are no errors
}

// openBrowser starts a browser that ends with the test.
func openBrowser(t *testing.T, addr string) *browser {
	t.Helper()
	path := needs.Chromium(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1360, 900), chromedp.Flag("lang", "en-US"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	all, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(all)
	t.Cleanup(end)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, origin: "http://" + addr, dir: os.Getenv("GOTYCOON_SCREENSHOTS")}
	if b.dir == "" {
		b.dir = t.TempDir()
	}
	require.NoError(t, os.MkdirAll(b.dir, 0o755))
	require.NoError(t, chromedp.Listen(ctx, b.hear))
	b.do(call(log.Enable, cdp.Empty{}), call(network.Enable, network.EnableParams{}), call(runtime.Enable, cdp.Empty{}))
	return b
}

// call is a command of the protocol as a step.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

// hear notes what must not happen.
func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if !b.gone {
			b.wrong = append(b.wrong, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventExceptionThrown:
		b.wrong = append(b.wrong, "exception: "+fmt.Sprintf("%+v %+v", e.ExceptionDetails, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		b.wrong = append(b.wrong, fmt.Sprintf("console.%s was called", e.Type))
	case *network.EventRequestWillBeSent:
		// Pictures of the browser itself.
		if !strings.HasPrefix(e.Request.URL, b.origin+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
			b.wrong = append(b.wrong, "request to "+e.Request.URL)
		}
	}
}

// fine checks that nothing has happened that must not.
func (b *browser) fine() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.wrong)
}

// expected takes back what the browser has noted with these words, which a test has brought about.
func (b *browser) expected(words string) {
	b.t.Helper()
	b.forget(words)
	b.fine()
}

// forget takes it back if it is there.
func (b *browser) forget(words string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = slices.DeleteFunc(b.wrong, func(text string) bool { return strings.Contains(text, words) })
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// eval returns what an expression is in the page.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return value
}

// until waits until an expression is true. It asks from outside: the page's policy forbids to bring
// code in.
func (b *browser) until(expression string) {
	b.t.Helper()
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !eval[bool](b, "Boolean("+expression+")"); <-tick.C {
		if time.Now().After(deadline) {
			b.shot("failed")
			b.t.Fatalf("never true: %s\nthe page shows:\n%s", expression, eval[string](b, "document.body.innerText"))
		}
	}
}

// sees waits until an element's text has these words.
func (b *browser) sees(selector, words string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q)?.innerText.replace(/\s+/g, " ").includes(%q)`, selector, words))
}

// button is an expression for the button or link that has these words in an element.
func button(within, words string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%q)].filter(e => e.checkVisibility() && e.innerText.trim().replace(/\s+/g, " ") === %q)[0]`,
		within+" button, "+within+" a, "+within+" label", words)
}

// press clicks on what has these words, with the mouse.
func (b *browser) press(within, words string) {
	b.t.Helper()
	b.until(button(within, words) + " && !" + button(within, words) + ".disabled")
	at := eval[[]float64](b, fmt.Sprintf(`(() => { const e = %s; e.scrollIntoView({block: "nearest"}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`,
		button(within, words)))
	b.do(chromedp.MouseClickXY(at[0], at[1]))
}

// types types on the keyboard.
func (b *browser) types(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// slash presses that key as a keyboard does: the character is typed by the key that is pressed,
// unless the page prevents it.
func (b *browser) slash() {
	b.t.Helper()
	b.do(call(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Code: "Slash", Text: "/"}),
		call(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: "/", Code: "Slash"}))
}

// write gives an input a value, as somebody who types it.
func (b *browser) write(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q)`, selector))
	for range 3 { // a click before may take the focus away late
		eval[bool](b, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.focus(); e.select(); return true; })()`, selector))
		b.types(text)
		if eval[string](b, fmt.Sprintf(`document.querySelector(%q).value`, selector)) == text {
			return
		}
	}
	b.t.Fatalf("%q cannot be typed into %s", text, selector)
}

// section opens a section and waits until it shows its name.
func (b *browser) section(path, title string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.origin + "/console/#/" + path))
	b.sees("h1", title)
	b.until(`document.querySelector("#main .empty")?.innerText !== "Loading."`)
}

// size makes the window another one.
func (b *browser) size(width, height int64, scale float64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale)))
}

// prefers has the machine prefer light or dark colours.
func (b *browser) prefers(scheme string) {
	b.t.Helper()
	b.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}))
}

// shot keeps a screenshot.
func (b *browser) shot(name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(b.dir, name+".png"), picture, 0o644))
}

// unclipped checks that nothing is wider than the window, and that no text is cut off in its
// element.
func (b *browser) unclipped(where string) {
	b.t.Helper()
	require.LessOrEqual(b.t, eval[float64](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0.0, where)
	cut := eval[[]string](b, `[...document.querySelectorAll("main *, header *, nav *")]
		.filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1 && getComputedStyle(e).overflowX !== "visible" && getComputedStyle(e).overflowX !== "auto"
			&& !e.matches("input"))
		.map(e => e.tagName + "." + e.className + ": " + e.innerText)`)
	require.Empty(b.t, cut, where)
	outside := eval[[]string](b, `[...document.querySelectorAll(".card")].flatMap(card => [...card.querySelectorAll("*")]
		.filter(e => e.checkVisibility() && !e.closest(".scroll, .value, svg, .hidden-text") && e.getBoundingClientRect().right > card.getBoundingClientRect().right + 1)
		.map(e => e.tagName + "." + e.className + ": " + e.innerText))`)
	require.Empty(b.t, outside, where)
}

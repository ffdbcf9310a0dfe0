package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"gotycoon/client"
	"gotycoon/internal/needs"
	"gotycoon/server"
)

// sections are the addresses of all sections, and what each shows.
func sections() [][3]string {
	return [][3]string{
		{"overview", "Overview", "Requests"},
		{"databases", "Databases", "people.kct"},
		{"replication", "Replication", "follower"},
		{"log", "Update log", "Newest update"},
		{"snapshots", "Snapshots and backups", "Take a snapshot now"},
		{"locks", "Locks", "invoice/4711"},
		{"counters", "Counters", "licences/editor"},
		{"numbers", "Sequences and quotas", "seats"},
		{"slow", "Slow requests", "took longer than"},
		{"server", "Server", "Durability"},
	}
}

// warm is how long the server is busy before pictures are taken: some seconds, or as
// GOTYCOON_SCREENSHOTS_AFTER says, for charts that have something to show.
func warm(t *testing.T, b *browser) {
	t.Helper()
	text := os.Getenv("GOTYCOON_SCREENSHOTS_AFTER")
	if text == "" {
		text = "1500ms"
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	until := time.Now().Add(d)
	b.until(`document.querySelectorAll(".plot path").length > 5`)
	for tick := time.NewTicker(100 * time.Millisecond); time.Now().Before(until); <-tick.C {
	}
}

// TestSections clicks through the console and keeps pictures of it.
func TestSections(t *testing.T) {
	needs.Chromium(t)
	s := start(t, between(t))
	s.store()
	s.keep()
	done := s.busy()
	b := openBrowser(t, s.console)
	b.prefers("light")
	b.section("overview", "Overview")
	b.sees("#server-state", "ready")
	warm(t, b)
	pictures(b, "light")
	b.prefers("dark")
	pictures(b, "dark")
	phone(b)
	done()
	b.size(1300, 900, 1)
	b.section("server", "Server")
	b.unclipped("server at 1300 pixels")
	b.size(1360, 900, 1)
	t.Run("records", func(t *testing.T) { b.t = t; records(b, s) })
	t.Run("snapshots", func(t *testing.T) { b.t = t; snapshots(b) })
	t.Run("keyboard", func(t *testing.T) { b.t = t; keyboard(b) })
	t.Run("theme", func(t *testing.T) { b.t = t; theme(b) })
	t.Run("gone", func(t *testing.T) { b.t = t; gone(b, s) })
	b.t = t
	b.fine()
}

// pictures shows every section.
func pictures(b *browser, scheme string) {
	b.t.Helper()
	for i, s := range sections() {
		b.section(s[0], s[1])
		b.sees("main", s[2])
		b.unclipped(s[0])
		b.shot(fmt.Sprintf("%s-%02d-%s", scheme, i+1, s[0]))
	}
	b.section("databases/0", "people.kct")
	b.sees("main", "Page 1, 50 records")
	b.press("main", "person:00003")
	b.sees(".detail", "never")
	b.sees(".detail", "Edsger Dijkstra")
	b.unclipped("record")
	b.shot(scheme + "-11-record")
	b.fine()
}

// phone shows every section on the smallest of phones.
func phone(b *browser) {
	b.t.Helper()
	b.size(360, 740, 2)
	for i, s := range sections() {
		b.section(s[0], s[1])
		b.sees("main", s[2])
		b.unclipped("phone " + s[0])
		b.shot(fmt.Sprintf("phone-%02d-%s", i+1, s[0]))
	}
	b.press("header", "Menu")
	b.until(`document.querySelector("nav").checkVisibility()`)
	b.unclipped("phone menu")
	b.shot("phone-00-menu")
	b.press("nav", "Databases")
	b.sees("h1", "Databases")
	b.until(`!document.querySelector("nav").checkVisibility()`)
	b.section("databases/0", "people.kct")
	b.sees("main", "Page 1, 50 records")
	b.shot("phone-11-records")
	b.press("main", "person:00003")
	b.sees(".detail", "Edsger Dijkstra")
	b.unclipped("phone record")
	b.shot("phone-12-record")
	b.fine()
}

// records creates, changes and removes a record, with the mouse.
func records(b *browser, s *running) {
	c := client.New(s.data, client.Options{})
	defer c.Close()
	db := c.DB("0")
	b.prefers("light")
	b.section("databases/0", "people.kct")

	require.NoError(b.t, db.Set(b.t.Context(), "json", []byte(`{"id": 9007199254740993, "tags": ["a, b", "c:d"], "none": {}}`), client.Never))
	b.write("#prefix", "json")
	b.press("main", "json")
	b.until(fmt.Sprintf(`document.querySelector(".detail pre")?.textContent === %q`,
		"{\n  \"id\": 9007199254740993,\n  \"tags\": [\n    \"a, b\",\n    \"c:d\"\n  ],\n  \"none\": {}\n}"))
	b.shot("record-json")
	b.press(".detail", "Text")
	b.sees(".detail", `{"id": 9007199254740993, "tags"`)
	b.press(".detail", "Close")

	b.press("main", "New record")
	b.write("dialog input[type=text]", `new\x00key`)
	b.write("dialog textarea", "first value")
	b.press("dialog", "In")
	b.write("dialog input[type=number]", "600")
	b.shot("dialog-new")
	b.press("dialog", "Create")
	b.sees(".detail", "first value")
	b.sees(".detail", "in 9 min")
	r, err := db.GetRecord(b.t.Context(), "new\x00key")
	require.NoError(b.t, err)
	require.Equal(b.t, "first value", string(r.Value))
	require.WithinDuration(b.t, time.Now().Add(600*time.Second), r.Expires, time.Minute)

	b.write("#prefix", `new\x00`)
	b.sees("main", "Page 1, 1 record")
	b.press(".detail", "Edit")
	b.write("dialog textarea", "second value")
	b.press("dialog", "Never")
	b.press("dialog", "Save")
	b.sees(".detail", "second value")
	b.sees(".detail", "never")

	b.press(".detail", "Edit") // and somebody else is faster
	b.sees("dialog", "Edit record")
	require.NoError(b.t, db.Set(b.t.Context(), "new\x00key", []byte("of somebody else"), client.Never))
	b.write("dialog textarea", "third value")
	b.press("dialog", "Save")
	b.sees("dialog", "has changed meanwhile")
	b.press("dialog", "Cancel")
	value, err := db.Get(b.t.Context(), "new\x00key")
	require.NoError(b.t, err)
	require.Equal(b.t, "of somebody else", string(value))
	b.expected("409")

	b.press("main", "Refresh")
	b.press("main", `new\x00key`)
	b.sees(".detail", "of somebody else")
	b.press(".detail", "Hex")
	b.sees(".detail", "6f 66 20 73")
	b.press(".detail", "Delete")
	b.sees("dialog", "Delete this record?")
	b.shot("dialog-delete")
	require.Equal(b.t, "Cancel", eval[string](b, "document.activeElement.innerText"), "the harmless button has the focus")
	b.press("dialog", "Cancel")
	b.until(`!document.querySelector("dialog")`)
	_, err = db.Get(b.t.Context(), "new\x00key")
	require.NoError(b.t, err, "nothing is done without a confirmation")
	b.press(".detail", "Delete")
	b.press("dialog", "Delete record")
	b.sees("main", "No key begins with this.")
	_, err = db.Get(b.t.Context(), "new\x00key")
	require.ErrorIs(b.t, err, client.ErrNoRecord)
	pages(b)
}

// pages leafs through all kinds of databases.
func pages(b *browser) {
	for i, name := range []string{"people.kct", "sessions.kch", "*", ":", "%"} {
		b.section(fmt.Sprintf("databases/%d", i), name)
		b.sees("main", "Page 1, 50 records")
		first := eval[string](b, `document.querySelector(".keys tbody").innerText`)
		b.types("]")
		b.sees("main", "Page 2, 50 records")
		require.NotEqual(b.t, first, eval[string](b, `document.querySelector(".keys tbody").innerText`))
		b.press("main", "Previous")
		b.sees("main", "Page 1, 50 records")
	}
	b.section("databases/0?prefix=html", "people.kct")
	b.press("main", "html:<b>")
	b.sees(".detail", "<script>alert('never')</script>")
	b.section("databases/0?prefix=blob", "people.kct")
	b.press("main", `blob:\x00\x01\xff`)
	b.sees(".detail", "89 50 4e 47")
	b.section("databases/65534", "services.kct")
	b.sees("main", "cannot be changed here")
	b.fine()
}

// snapshots takes one, and has files brought up to date.
func snapshots(b *browser) {
	b.section("snapshots", "Snapshots and backups")
	b.press("main", "Take a snapshot now")
	b.sees("#notices", "The snapshot is taken.")
	b.sees("main", "00000000.ktss")
	b.press("main", "Checkpoint")
	b.sees("main", "done")
	b.shot("snapshot-taken")
	b.fine()
}

// keyboard does without a mouse.
func keyboard(b *browser) {
	b.do(chromedp.Navigate("about:blank"))
	b.forget("about:blank")
	b.section("overview", "Overview")
	b.types(kb.Tab)
	require.Equal(b.t, "Skip to the content", eval[string](b, "document.activeElement.innerText"))
	b.types(kb.Enter)
	b.until(`document.activeElement.id === "main"`)
	b.sees("h1", "Overview")
	for i, s := range sections() {
		b.types(fmt.Sprint((i + 1) % 10))
		b.sees("h1", s[1])
		require.Equal(b.t, "main", eval[string](b, "document.activeElement.id"), "the focus is where the new section begins")
	}
	b.types("?")
	b.sees("dialog", "Keyboard shortcuts")
	b.shot("dialog-help")
	b.types(kb.Escape)
	b.until(`!document.querySelector("dialog")`)
	b.types("2")
	b.sees("main", "people.kct")
	eval[bool](b, `(document.querySelector("main tbody a").focus(), true)`)
	b.types(kb.Enter)
	b.sees("main", "Page 1, 50 records")
	b.slash()
	require.Equal(b.t, "prefix", eval[string](b, "document.activeElement.id"))
	b.types("person:0010")
	b.until(`document.querySelector("#prefix").value === "person:0010"`)
	b.sees("main", "Page 1, 10 records")
	b.types(kb.Tab + kb.Tab)
	require.Equal(b.t, "person:00100", eval[string](b, "document.activeElement.innerText"))
	require.NotEqual(b.t, "none", eval[string](b, "getComputedStyle(document.activeElement).outlineStyle"), "the focus can be seen")
	b.types(kb.ArrowDown + kb.Enter)
	b.sees(".detail", "person:00101")
	b.types(kb.Escape)
	b.until(`!document.querySelector(".detail").checkVisibility() && document.activeElement.innerText === "person:00101"`)
	b.types("1")
	b.sees("h1", "Overview")
	b.until(`document.querySelectorAll(".plot path").length > 5`)
	eval[bool](b, `(document.querySelector(".plot").focus(), true)`)
	b.types(kb.ArrowLeft + kb.ArrowLeft)
	b.until(`document.querySelector(".tip").checkVisibility()`)
	b.fine()
}

// theme switches the colours and keeps them.
func theme(b *browser) {
	background := func() string { return eval[string](b, "getComputedStyle(document.body).backgroundColor") }
	b.prefers("light")
	b.section("overview", "Overview")
	light := background()
	b.press("header", "Theme: system")
	b.sees("#theme", "light")
	require.Equal(b.t, light, background())
	b.press("header", "Theme: light")
	b.sees("#theme", "dark")
	dark := background()
	require.NotEqual(b.t, light, dark)
	b.do(chromedp.Reload())
	b.sees("#theme", "dark")
	require.Equal(b.t, dark, background(), "it is remembered")
	b.types("t")
	b.sees("#theme", "system")
	require.Equal(b.t, light, background())
}

// gone shows what the console does when the server is not there, and when it is back.
func gone(b *browser, s *running) {
	b.section("overview", "Overview")
	b.mu.Lock()
	b.gone = true
	b.mu.Unlock()
	require.Zero(b.t, s.stop())
	b.sees("#banner", "No answer from the server. Trying again.")
	b.sees("#server-state", "no answer")
	b.shot("gone")
	s.begin()
	b.sees("#server-state", "ready")
	b.until(`!document.querySelector("#banner").checkVisibility()`)
}

// TestWithoutAnything: what is off says so, and how to switch it on; nothing can be changed where
// the console only shows.
func TestWithoutAnything(t *testing.T) {
	needs.Chromium(t)
	s := start(t, func(c *server.Config) {
		c.Databases = []string{":"}
		c.UpdateLog, c.ServerID, c.Snapshots.Dir, c.Services = "", server.NoServerID, "", server.ServicesConfig{}
		c.Admin.Slow, c.Admin.ConsoleReadOnly = 0, true
	})
	b := openBrowser(t, s.console)
	b.prefers("light")
	for path, option := range map[string]string{
		"replication": "-mhost", "log": "-ulog", "snapshots": "-bgs", "locks": "-lock-port", "counters": "-counter-port",
		"numbers": "-quota-port", "slow": "-slow", "server": "-memcache-port",
	} {
		b.do(chromedp.Navigate(b.origin + "/console/#/" + path))
		b.sees("main", option)
		b.unclipped(path)
		b.shot("off-" + path)
	}
	b.section("databases/0", ":")
	b.sees("main", "The database has no records.")
	b.sees("main", "-console-read-only")
	b.until(button("main", "New record") + ".disabled")
	b.shot("off-records")
	b.fine()
}

// TestAlarmsAboveThePage: each alarm is a line above the page and covers nothing, the frame says how
// many there are, and long names leave the other columns of a table their words.
func TestAlarmsAboveThePage(t *testing.T) {
	needs.Chromium(t)
	long := filepath.Join(t.TempDir(), "a-directory-with-a-rather-long-name-for-the-store-of-the-shop", "and-one-more-below-it")
	require.NoError(t, os.MkdirAll(long, 0o755))
	s := start(t, func(c *server.Config) {
		c.Databases = []string{filepath.Join(long, "customers-of-the-shop-in-europe-and-elsewhere.kct")}
		c.UpdateLog, c.Snapshots.Dir = filepath.Join(long, "ulog"), filepath.Join(long, "snapshots")
		c.Limits.MaxSize = 1
		c.Reload.Settings = append(c.Reload.Settings, server.Setting{Name: "databases", Value: c.Databases[0], Source: "command line"})
	})
	b := openBrowser(t, s.console)
	for _, width := range []int64{1300, 800} {
		b.size(width, 900, 1)
		for _, section := range []string{"databases", "log", "snapshots", "server"} {
			b.do(chromedp.Navigate(b.origin + "/console/#/" + section))
			b.until(`document.querySelectorAll("main table tbody td").length > 3`)
			b.sees("#server-state", "not ready, 1 alarm")
			b.sees("#banner", "updates are refused")
			require.Equal(t, 1, eval[int](b, `document.querySelectorAll("#banner > p").length`))
			require.True(t, eval[bool](b, `document.querySelector("#banner").getBoundingClientRect().bottom <= document.querySelector("main").getBoundingClientRect().top`), "nothing is below it")
			where := fmt.Sprintf("%s at %d pixels", section, width)
			b.unclipped(where)
			require.Empty(t, eval[[]string](b, `[...document.querySelectorAll("main td:not(.long, .mono)")].flatMap(td => {
				const walk = document.createTreeWalker(td, NodeFilter.SHOW_TEXT), broken = [];
				while (walk.nextNode()) for (const word of walk.currentNode.data.matchAll(/[^\s-]+/g)) {
					const range = document.createRange();
					range.setStart(walk.currentNode, word.index);
					range.setEnd(walk.currentNode, word.index + word[0].length);
					if (range.getClientRects().length > 1) broken.push(word[0]);
				}
				return broken;
			})`), "words in two lines in %s", where)
			b.shot(fmt.Sprintf("alarm-%d-%s", width, section))
		}
	}
	b.fine()
}

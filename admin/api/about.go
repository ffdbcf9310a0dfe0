package api

import (
	"net/http"
	"time"

	"gotycoon/admin"
)

// about answers with the figures that every page of the console shows.
func (a *API) about(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	records, bytes := int64(0), int64(0)
	for _, d := range s.Catalog.All() {
		m := d.Measure()
		records += max(0, m.Records)
		bytes += m.Bytes
	}
	fixed := a.opts.Fixed()
	if err := a.server.May(r, admin.Admin); err != nil {
		fixed = err.Error()
	}
	reasons := a.opts.Ready()
	if reasons == nil {
		reasons = []string{}
	}
	alarms := []Alarm{}
	if s.Alarms != nil {
		alarms = s.Alarms()
	}
	user, _, _ := r.BasicAuth()
	answer := map[string]any{
		"identity": s.Identity, "version": a.opts.Version, "revision": a.opts.Revision,
		"started": a.opts.Started.UnixMilli(), "now": time.Now().UnixMilli(), "notReady": reasons,
		"fixed": fixed, "user": user, "databases": len(s.Catalog.All()), "records": records, "bytes": bytes, "alarms": alarms,
	}
	if s.Cluster != nil {
		answer["cluster"] = true
	}
	if s.Engine != nil {
		answer["engine"] = true
	}
	return answer, nil
}

// facts answers with process, machine and configuration. Only admins get the configuration.
func (a *API) facts(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	answer := map[string]any{"sections": []Section{}, "settings": []Setting{}, "settingsOff": ""}
	if s.Facts != nil {
		answer["sections"] = s.Facts()
	}
	switch err := a.server.May(r, admin.Admin); {
	case err != nil:
		answer["settingsOff"] = "The configuration is shown to admins only: " + err.Error()
	case s.Settings == nil:
		answer["settingsOff"] = "This server does not tell its configuration."
	default:
		if all := s.Settings(); len(all) > 0 {
			answer["settings"] = all
		}
	}
	return answer, nil
}

// slowOperation is a slow request.
type slowOperation struct {
	Time     int64   `json:"time"` // UNIX milliseconds
	Protocol string  `json:"protocol"`
	Command  string  `json:"command"`
	Database string  `json:"database"`
	Key      string  `json:"key"`
	In       int     `json:"in"`
	Out      int     `json:"out"`
	Failed   bool    `json:"failed"`
	Seconds  float64 `json:"seconds"`
	Wait     float64 `json:"wait"`
	Batch    int     `json:"batch"`
	Peer     string  `json:"peer"`
}

// slow answers with the latest slow requests.
func (a *API) slow(_ http.ResponseWriter, _ *http.Request, s *Sources) (any, error) {
	if s.Meter == nil || s.Slow == 0 {
		return off("Slow requests are not remembered. Start the server with -slow TIME, for example -slow 10ms."), nil
	}
	all := []slowOperation{}
	latest, seen := s.Meter.Slow()
	for _, o := range latest {
		all = append(all, slowOperation{
			Time: o.Time.UnixMilli(), Protocol: o.Protocol, Command: o.Command, Database: o.Database, Key: o.Key, In: o.In, Out: o.Out,
			Failed: o.Failed, Seconds: o.Duration.Seconds(), Wait: o.Wait.Seconds(), Batch: o.Batch, Peer: o.Peer,
		})
	}
	return map[string]any{"threshold": s.Slow.Seconds(), "seen": seen, "operations": all}, nil
}

// off is the answer for a part that is switched off; the text says how to switch it on.
func off(text string) map[string]any { return map[string]any{"off": text} }

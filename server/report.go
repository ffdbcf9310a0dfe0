package server

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"gotycoon/db"
	"gotycoon/internal/forward"
	"gotycoon/internal/procinfo"
	"gotycoon/internal/version"
)

// Versions that clients see: the versions of the original whose protocols and files this server
// speaks.
const (
	Version       = "0.9.56b (2.19)"
	EngineVersion = "1.2.76a (16.13)"

	features       = "(epoll)"
	engineFeatures = "(atomic)"
)

// reporter makes the answer of /rpc/report.
type reporter struct {
	threads   int // Config.Threads
	started   time.Time
	traffic   *traffic
	catalog   *db.Catalog
	following *following
	replicas  *replicas
	primary   *primary
	standing  *standing
	mover     *forward.Forwarder
	retention *retention
	cluster   *clusterShown // nil: in none
	engine    *engineShown  // nil: the databases are this server's alone
	alarms    *alarms
}

// report adds the rows about program, process and machine. The parts add their own rows. Clients
// find the rows that the original has, and others only when a part is used that the original lacks.
// So our own version stands among the features of the program.
func (r *reporter) report(rows map[string]string) {
	now := time.Now()
	rows["conf_kt_version"] = Version
	built := version.Current()
	rows["conf_kt_features"] = fmt.Sprintf("%s(gotycoon %s)(revision %s)", features, built.Version, built.Revision) + r.engine.feature()
	rows["conf_kc_version"] = EngineVersion
	rows["conf_kc_features"] = engineFeatures
	rows["conf_os_name"] = "Linux"
	open, _ := r.traffic.connections()
	rows["serv_conn_count"] = strconv.Itoa(open)
	rows["serv_task_count"] = "0" // requests are never queued
	rows["serv_thread_count"] = strconv.Itoa(min(r.threads, MaxThreads))
	rows["serv_current_time"] = seconds(time.Duration(now.UnixNano()))
	rows["serv_running_term"] = seconds(now.Sub(r.started))
	rows["serv_proc_id"] = strconv.Itoa(os.Getpid())
	r.following.report(rows, now)
	r.replicas.report(rows)
	r.replicas.reportConfirmation(rows)
	r.primary.report(rows)
	r.standing.report(rows)
	r.cluster.report(rows)
	reportForward(r.mover, rows)
	r.reportPassedOver(rows)
	r.reportCompactions(rows)
	r.retention.report(rows)
	r.alarms.report(rows)
	reportSystem(rows)
}

// reportPassedOver marks databases that were opened without acknowledged updates.
func (r *reporter) reportPassedOver(rows map[string]string) {
	for i := range r.catalog.Len() {
		if passed := r.catalog.DB(i).Info().PassedOver; passed != nil {
			rows[fmt.Sprintf("passed_over_%d", i)] = passed.String()
		}
	}
	if d := r.catalog.Services(); d != nil && d.Info().PassedOver != nil {
		rows["passed_over_services"] = d.Info().PassedOver.String()
	}
}

// reportCompactions tells of the files that are being compacted, or have been.
func (r *reporter) reportCompactions(rows map[string]string) {
	for i := range r.catalog.Len() {
		if text := r.catalog.DB(i).Compaction().String(); text != "" {
			rows[fmt.Sprintf("compaction_%d", i)] = text
		}
	}
}

// reportSystem adds the rows about the machine and what the process takes of it.
func reportSystem(rows map[string]string) {
	info := procinfo.Read()
	for name, bytes := range map[string]int64{
		"sys_mem_total":  info.MemTotal,
		"sys_mem_free":   info.MemFree,
		"sys_mem_cached": info.MemCached,
		"sys_mem_size":   info.MemSize,
		"sys_mem_rss":    info.MemRSS,
		"sys_mem_peak":   info.MemPeak,
	} {
		rows[name] = strconv.FormatInt(bytes, 10)
	}
	rows["sys_ru_utime"] = seconds(info.User)
	rows["sys_ru_stime"] = seconds(info.System)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }

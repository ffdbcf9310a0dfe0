// Package kubernetes is tests only, in a module of its own: the manifests are what Kubernetes's own
// types say, and their parts fit together. That servers take the arguments is tested by cmd/ktserver.
package kubernetes

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// manifests are the objects of a file, by kind and name. A field that its kind does not have is an
// error.
func manifests(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	all := map[string]any{}
	for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		require.NoError(t, yaml.Unmarshal(doc, &head))
		kinds := map[string]any{"Service": &core.Service{}, "StatefulSet": &apps.StatefulSet{}, "PodDisruptionBudget": &policy.PodDisruptionBudget{}}
		object := kinds[head.Kind]
		require.NotNil(t, object, head.Kind)
		require.NoError(t, yaml.UnmarshalStrict(doc, object), head.Kind)
		all[head.Kind+" "+head.Metadata.Name] = object
	}
	return all
}

func TestTheClusterFitsTogether(t *testing.T) {
	all := manifests(t, "cluster.yaml")
	set, _ := all["StatefulSet kt"].(*apps.StatefulSet)
	require.NotNil(t, set)
	pod := set.Spec.Template
	require.Equal(t, set.Spec.Selector.MatchLabels, pod.Labels)
	require.Contains(t, all, "Service "+set.Spec.ServiceName)

	require.Len(t, pod.Spec.Containers, 1)
	c := pod.Spec.Containers[0]
	var ports, volumes []string
	for _, p := range c.Ports {
		ports = append(ports, p.Name)
	}
	for _, v := range pod.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, v := range set.Spec.VolumeClaimTemplates {
		volumes = append(volumes, v.Name)
	}
	for _, m := range c.VolumeMounts {
		require.Contains(t, volumes, m.Name)
	}
	for _, probe := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		require.Contains(t, ports, probe.HTTPGet.Port.String())
	}
	for name, object := range all {
		switch o := object.(type) {
		case *core.Service:
			require.Equal(t, pod.Labels, o.Spec.Selector, name)
			require.EqualValues(t, 1978, o.Spec.Ports[0].Port)
		case *policy.PodDisruptionBudget:
			require.Equal(t, pod.Labels, o.Spec.Selector.MatchLabels)
			require.Equal(t, 1, o.Spec.MaxUnavailable.IntValue(), "a majority stays")
		}
	}

	// The members are the pods, and no server ID is 0.
	require.Positive(t, set.Spec.Ordinals.Start)
	i := slices.IndexFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "-members=") })
	require.Positive(t, i)
	members := strings.Split(strings.TrimPrefix(c.Args[i], "-members="), ",")
	require.Len(t, members, int(*set.Spec.Replicas))
	for n, member := range members {
		name := string(rune('0' + int(set.Spec.Ordinals.Start) + n))
		require.Equal(t, "kt-"+name+"."+set.Spec.ServiceName+":1978", member)
	}
	require.Contains(t, c.Args, "-advertise=$(POD)."+set.Spec.ServiceName+":1978")
}

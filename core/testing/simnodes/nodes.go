package simnodes

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// UserAgent is the user agent of the simulation in audit logs.
const UserAgent = "simnodes"

// Nodes are running simulated nodes. All methods may be called from any goroutine.
type Nodes struct {
	options Options
	client  kubernetes.Interface
	pods    cache.SharedIndexInformer
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	counts  counters
	done    sync.WaitGroup

	mu     sync.Mutex
	nodes  []*node
	byName map[string]*node
	runs   map[types.NamespacedName]*podRun
	placed map[types.NamespacedName]*node
	images map[string]Image
	nextIP uint32
}

type node struct {
	name   string
	ip     string
	labels map[string]string
	paused bool
	pods   int // placed on it
}

// Start registers the nodes and serves their pods until ctx ends. It returns when the nodes are
// registered and every pod that is already assigned to them is known.
func Start(ctx context.Context, cfg *rest.Config, options Options) (*Nodes, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	client, err := newClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("simulate nodes: %w", err)
	}
	n := &Nodes{
		options: options,
		client:  client,
		byName:  map[string]*node{},
		runs:    map[types.NamespacedName]*podRun{},
		placed:  map[types.NamespacedName]*node{},
		images:  maps.Clone(options.Images),
	}
	if n.images == nil {
		n.images = map[string]Image{}
	}
	n.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](5*time.Millisecond, 5*time.Second),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: options.Clock})
	for i := range options.Nodes {
		n.addNode(i)
	}
	if err := n.register(ctx); err != nil {
		return nil, err
	}
	return n, n.run(ctx)
}

// Run simulates count nodes, possibly none, with default options until ctx ends.
func Run(ctx context.Context, cfg *rest.Config, count int) error {
	if count == 0 {
		<-ctx.Done()
		return nil
	}
	n, err := Start(ctx, cfg, Options{Nodes: count})
	if err != nil {
		return err
	}
	n.Wait()
	return nil
}

func newClient(cfg *rest.Config) (*kubernetes.Clientset, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = UserAgent
	cfg.QPS = -1
	cfg.RateLimiter = nil
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	cfg.AcceptContentTypes = cfg.ContentType + ",application/json"
	return kubernetes.NewForConfig(cfg)
}

func (n *Nodes) addNode(i int) {
	name := fmt.Sprintf("%s%d", n.options.Prefix, i)
	added := &node{name: name, ip: fmt.Sprintf("10.%d.%d.%d", 32+i>>16&15, i>>8&255, i&255),
		labels: n.options.nodeLabels(name, i)}
	n.nodes = append(n.nodes, added)
	n.byName[name] = added
}

// run starts the background goroutines.
func (n *Nodes) run(ctx context.Context) error {
	lists := cache.NewFilteredListWatchFromClient(n.client.CoreV1().RESTClient(), "pods", "", n.podFilter)
	n.pods = cache.NewSharedIndexInformer(lists, &corev1.Pod{}, 0, cache.Indexers{})
	if err := n.pods.SetTransform(dropManagedFields); err != nil {
		return fmt.Errorf("simulate nodes: %w", err)
	}
	if _, err := n.pods.AddEventHandler(n.podEvents()); err != nil {
		return fmt.Errorf("simulate nodes: %w", err)
	}
	n.done.Go(func() { n.pods.RunWithContext(ctx) })
	n.done.Go(func() {
		<-ctx.Done()
		n.queue.ShutDown()
	})
	if n.options.LeasePeriod > 0 {
		n.done.Go(func() { n.beat(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), n.pods.HasSynced) {
		return fmt.Errorf("simulate nodes: list pods: %w", context.Cause(ctx))
	}
	for range n.options.Workers {
		n.done.Go(func() {
			for n.work(ctx) {
			}
		})
	}
	return nil
}

// Wait blocks until the context given to Start has ended and no write is under way any more.
func (n *Nodes) Wait() { n.done.Wait() }

// Names returns the names of the nodes, by number.
func (n *Nodes) Names() []string {
	names := make([]string, len(n.nodes))
	for i, node := range n.nodes {
		names[i] = node.name
	}
	return names
}

// SetImage changes how containers of an image behave, existing ones included.
func (n *Nodes) SetImage(name string, behaviour Image) {
	n.mu.Lock()
	n.images[name] = behaviour
	n.mu.Unlock()
	n.wakeAll()
}

// Pause stops the kubelet of a node: no status, no end of pods, no lease, until Resume. An unknown
// name is ignored.
func (n *Nodes) Pause(name string) { n.setPaused(name, true) }

// Resume starts the kubelet of a paused node again.
func (n *Nodes) Resume(name string) { n.setPaused(name, false) }

func (n *Nodes) setPaused(name string, paused bool) {
	n.mu.Lock()
	if node := n.byName[name]; node != nil {
		node.paused = paused
	}
	n.mu.Unlock()
	n.wakeAll()
}

// SetReady makes a container's readiness probe fail, or succeed again. The error says that no
// simulated node runs the container.
func (n *Nodes) SetReady(pod types.NamespacedName, name string, ready bool) error {
	return n.order(pod, name, func(c *container) { c.failing = !ready })
}

// Exit makes a container's process end with code. The error says that no simulated node runs the
// container.
func (n *Nodes) Exit(pod types.NamespacedName, name string, code int32) error {
	return n.order(pod, name, func(c *container) { c.exitCode = &code })
}

// order changes a container as a test demands and wakes its pod.
func (n *Nodes) order(pod types.NamespacedName, name string, change func(*container)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if run := n.runs[pod]; run != nil {
		if c := run.running(n.cached(pod), name); c != nil {
			change(c)
			n.queue.Add(pod)
			return nil
		}
	}
	return fmt.Errorf("simulate nodes: no running container %s in pod %s", name, pod)
}

func (r *podRun) running(pod *corev1.Pod, name string) *container {
	if pod == nil || pod.UID != r.uid {
		return nil
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name && r.inits[i].state == running {
			return &r.inits[i]
		}
	}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name && r.mains[i].state == running {
			return &r.mains[i]
		}
	}
	return nil
}

func (n *Nodes) wakeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for pod := range n.runs {
		n.queue.Add(pod)
	}
}

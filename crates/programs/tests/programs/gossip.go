// Values are kept under a lock, sent on by a goroutine for each neighbour, and again by a ticker until they are known to have come. Which neighbour is
// first is left to a map and to select.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sync"
	"time"
)

type message struct {
	Src  string         `json:"src"`
	Dest string         `json:"dest"`
	Body map[string]any `json:"body"`
}

type node struct {
	mu      sync.Mutex
	out     sync.Mutex
	id      string
	others  map[string]chan float64
	next    int
	pending map[int]chan struct{}
	known   map[float64]bool
}

func (n *node) send(dest string, body map[string]any) {
	text, _ := json.Marshal(message{n.id, dest, body})
	n.out.Lock()
	defer n.out.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

func (n *node) number() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next++
	return n.next
}

// Asks, and waits for an answer or for the end of its time.
func (n *node) ask(dest string, body map[string]any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	id := n.number()
	came := make(chan struct{})
	n.mu.Lock()
	n.pending[id] = came
	n.mu.Unlock()
	body["msg_id"] = id
	n.send(dest, body)
	select {
	case <-came:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *node) serve(other string, values chan float64) {
	left := map[float64]bool{}
	ticker := time.NewTicker(300 * time.Millisecond)
	for {
		select {
		case value := <-values:
			left[value] = true
		case <-ticker.C:
		}
		for value := range left {
			if n.ask(other, map[string]any{"type": "gossip", "message": value}) == nil {
				delete(left, value)
			}
		}
	}
}

func (n *node) learn(value float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known[value] {
		return
	}
	n.known[value] = true
	for _, values := range n.others {
		go func(values chan float64) { values <- value }(values)
	}
}

func (n *node) handle(m message) {
	reply := map[string]any{"in_reply_to": m.Body["msg_id"]}
	switch m.Body["type"] {
	case "init":
		n.id = m.Body["node_id"].(string)
		rand.Seed(time.Now().UnixNano())
		for _, other := range m.Body["node_ids"].([]any) {
			if name := other.(string); name != n.id {
				n.others[name] = make(chan float64)
				go n.serve(name, n.others[name])
			}
		}
		reply["type"] = "init_ok"
	case "topology":
		reply["type"] = "topology_ok"
	case "broadcast", "gossip":
		n.learn(m.Body["message"].(float64))
		reply["type"] = m.Body["type"].(string) + "_ok"
	case "read":
		n.mu.Lock()
		all := []float64{}
		for value := range n.known {
			all = append(all, value)
		}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		n.mu.Unlock()
		reply["type"], reply["messages"] = "read_ok", all
	case "gossip_ok":
		n.mu.Lock()
		id := int(m.Body["in_reply_to"].(float64))
		if came := n.pending[id]; came != nil {
			delete(n.pending, id)
			close(came)
		}
		n.mu.Unlock()
		return
	}
	n.send(m.Src, reply)
}

func main() {
	n := &node{others: map[string]chan float64{}, pending: map[int]chan struct{}{}, known: map[float64]bool{}}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if m.Body["type"] == "init" || m.Body["type"] == "gossip_ok" {
			n.handle(m)
		} else {
			go n.handle(m)
		}
	}
}

// A model in Go without any library: the protocol alone suffices. Two clients add one to a counter that a server keeps. The bug: a client
// reads, adds, and writes back, and the other client's write in between is lost.
//
//	go build -o counter sdk/examples/counter.go
//	demi-lineage model check -- ./counter
//	demi-lineage fuzz --scenario sdk/examples/counter.toml --seed 1 --out found
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type message struct {
	Type string `json:"type"`
	Data int    `json:"data"`
}

// state is the server's counter, or what a client has been told is done.
type state struct {
	Value int `json:"value"`
	Done  int `json:"done"`
}

type question struct {
	Do      string           `json:"do"`
	Actor   string           `json:"actor"`
	From    string           `json:"from"`
	State   state            `json:"state"`
	Message message          `json:"message"`
	Seen    map[string]state `json:"seen"`
}

type request struct {
	ID       int             `json:"id"`
	Hello    json.RawMessage `json:"hello"`
	Requests []question      `json:"requests"`
}

type object = map[string]any

func send(to string, kind string, data int) object {
	return object{"send": object{"to": to, "message": message{kind, data}}}
}

func reacted(after state, effects ...object) object {
	return object{"state": after, "effects": append([]object{}, effects...)}
}

func answer(q question) object {
	switch q.Do {
	case "start":
		if q.Actor == "server" {
			return reacted(state{})
		}
		return reacted(state{}, object{"set": object{"timer": "add", "message": message{"Add", 0}}})
	case "deliver":
		return deliver(q)
	case "check":
		return object{"violations": broken(q.Seen)}
	}
	panic("no question '" + q.Do + "'")
}

func deliver(q question) object {
	s := q.State
	switch q.Message.Type {
	case "Add":
		return reacted(s, send("server", "Read", 0))
	case "Read":
		return reacted(s, send(q.From, "Value", s.Value))
	case "Value":
		return reacted(s, send("server", "Write", q.Message.Data+1))
	case "Write":
		s.Value = q.Message.Data
		return reacted(s, send(q.From, "Written", 0))
	case "Written":
		s.Done++
		return reacted(s)
	}
	return reacted(s)
}

// broken says that the counter is less than what the clients were told is done.
func broken(seen map[string]state) []object {
	found := []object{}
	server, there := seen["server"]
	done := seen["client-1"].Done + seen["client-2"].Done
	if there && server.Value < done {
		found = append(found, object{"fingerprint": "NothingLost", "affected": []string{"server"}})
	}
	return found
}

func main() {
	requests := bufio.NewReader(os.Stdin)
	for {
		line, err := requests.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		out := object{"id": r.ID}
		if r.Hello != nil {
			out["hello"] = object{
				"protocol": "demi-model/1",
				"actors":   []string{"server", "client-1", "client-2"},
			}
		} else {
			answers := []object{}
			for _, q := range r.Requests {
				answers = append(answers, answer(q))
			}
			out["answers"] = answers
		}
		text, err := json.Marshal(out)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%s\n", text)
	}
}

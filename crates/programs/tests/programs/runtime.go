// What Go's runtime does behind a program's back: each line asks for some of it.
package main

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type thing struct{ x int }

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "fault":
			func() {
				defer func() { fmt.Println(recover()) }()
				var nothing *thing
				nothing.x = 1
			}()
		case "about":
			path, _ := os.Executable()
			fmt.Println(path, os.Getpid(), runtime.NumCPU(), runtime.GOMAXPROCS(0), time.Now().UTC().Format("15:04:05"))
		case "sleep":
			time.Sleep(1500 * time.Millisecond)
			fmt.Println("slept", time.Now().UTC().Format("15:04:05"))
		case "collect":
			var kept [][]byte
			for i := 0; i < 100000; i++ {
				kept = append(kept, make([]byte, 1000))
				if i%1000 == 0 {
					kept = nil
				}
			}
			runtime.GC()
			var told runtime.MemStats
			runtime.ReadMemStats(&told)
			fmt.Println("collected", told.NumGC > 10, len(kept))
		case "many":
			var all sync.WaitGroup
			var sum int64
			for i := 0; i < 100; i++ {
				all.Add(1)
				go func(i int) {
					defer all.Done()
					time.Sleep(time.Duration(i) * time.Millisecond)
					atomic.AddInt64(&sum, int64(i))
				}(i)
			}
			all.Wait()
			fmt.Println("sum", sum)
		case "random":
			bytes := make([]byte, 8)
			rand.Read(bytes)
			order := map[int]bool{}
			for i := 0; i < 20; i++ {
				order[i] = true
			}
			fmt.Printf("%x", bytes)
			for i := range order {
				fmt.Print(" ", i)
			}
			fmt.Println()
		case "file":
			file, _ := os.Create("kept.txt")
			file.WriteString("hello")
			file.Sync()
			file.Close()
			read, err := os.ReadFile("kept.txt")
			fmt.Println(string(read), err)
		case "folder":
			folder, _ := os.Open(".")
			fmt.Println(folder.Sync())
			folder.Close()
		case "signal":
			came := make(chan os.Signal, 1)
			signal.Notify(came, syscall.SIGUSR1)
			syscall.Kill(os.Getpid(), syscall.SIGUSR1)
			fmt.Println(<-came)
		case "threads":
			runtime.LockOSThread()
			came := make(chan int)
			for i := 0; i < 4; i++ {
				go func(i int) {
					// Its thread ends with it.
					runtime.LockOSThread()
					came <- i
				}(i)
			}
			sum := 0
			for i := 0; i < 4; i++ {
				sum += <-came
			}
			runtime.UnlockOSThread()
			fmt.Println("threads", sum)
		case "blocks":
			// One thread waits in the kernel, and others go on.
			var ends [2]int
			syscall.Pipe(ends[:])
			go func() {
				for i := 0; i < 3; i++ {
					time.Sleep(time.Millisecond)
					fmt.Println("tick", i)
				}
				syscall.Write(ends[1], []byte{1})
			}()
			syscall.Read(ends[0], make([]byte, 1))
			fmt.Println("read")
		case "starts":
			fmt.Println(exec.Command("/bin/echo", "x").Output())
		case "listens":
			fmt.Println(net.Listen("tcp", "127.0.0.1:0"))
		case "dials":
			fmt.Println(net.Dial("tcp", "127.0.0.1:9"))
		case "spins":
			for {
			}
		case "exits":
			os.Exit(3)
		case "panics":
			panic("no")
		case "faults":
			var nothing *thing
			nothing.x = 1
		default:
			fmt.Println("echo", lines.Text())
		}
	}
}

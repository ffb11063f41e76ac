// go-coap as a peer: `serve PORT [ADDRESS]`, `serve PORT GROUP INTERFACE ADDRESS`, `discover URI`, `measured PORT`,
// which serves over UDP, TCP, and DTLS at the port behind, or `METHOD URI [PAYLOAD]`. So many GETs: `get*N URI` one after the other, `non*N URI` of those that are not confirmable,
// `open*N URI` all at once.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	gonet "net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	piondtls "github.com/pion/dtls/v3"
	"github.com/plgd-dev/go-coap/v3"
	"github.com/plgd-dev/go-coap/v3/dtls"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/message/pool"
	"github.com/plgd-dev/go-coap/v3/mux"
	"github.com/plgd-dev/go-coap/v3/net"
	"github.com/plgd-dev/go-coap/v3/options"
	"github.com/plgd-dev/go-coap/v3/tcp"
	"github.com/plgd-dev/go-coap/v3/udp"
	"github.com/plgd-dev/go-coap/v3/udp/client"
)

// After so long a request that is not confirmable has no answer.
const patience = 5 * time.Second

// For measurements.
var bench = []byte("0123456789012345678901234567890123456789")

func large() []byte {
	body := make([]byte, 20000)
	for i := range body {
		body[i] = byte(65 + i%26)
	}
	return body
}

func answer(w mux.ResponseWriter, code codes.Code, body []byte) {
	if err := w.SetResponse(code, message.TextPlain, bytes.NewReader(body)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func serve(port string, where []string) error {
	var lock sync.Mutex
	var kept []byte
	router := mux.NewRouter()
	handle := func(path string, handler mux.HandlerFunc) {
		if err := router.Handle(path, handler); err != nil {
			panic(err)
		}
	}
	handle("/test", func(w mux.ResponseWriter, r *mux.Message) {
		done := map[codes.Code]codes.Code{
			codes.GET: codes.Content, codes.POST: codes.Created, codes.PUT: codes.Changed, codes.DELETE: codes.Deleted,
		}
		answer(w, done[r.Code()], []byte(strings.ToLower(r.Code().String())))
	})
	handle("/separate", func(w mux.ResponseWriter, r *mux.Message) {
		time.Sleep(1500 * time.Millisecond)
		answer(w, codes.Content, []byte("separate"))
	})
	handle("/large", func(w mux.ResponseWriter, r *mux.Message) { answer(w, codes.Content, large()) })
	handle("/bench", func(w mux.ResponseWriter, r *mux.Message) { answer(w, codes.Content, bench) })
	var asked atomic.Int64
	handle("/tally", func(w mux.ResponseWriter, r *mux.Message) {
		answer(w, codes.Content, []byte(fmt.Sprint(asked.Add(1))))
	})
	handle("/store", func(w mux.ResponseWriter, r *mux.Message) {
		lock.Lock()
		defer lock.Unlock()
		if r.Code() == codes.PUT {
			kept, _ = r.ReadBody()
			answer(w, codes.Changed, nil)
			return
		}
		answer(w, codes.Content, kept)
	})
	handle("/count", func(w mux.ResponseWriter, r *mux.Message) {
		if observe, err := r.Options().Observe(); err != nil || observe != 0 {
			answer(w, codes.Content, []byte("0"))
			return
		}
		go notify(w.Conn(), r.Token())
	})
	if len(where) > 1 {
		return serveGroup(port, where[0], where[1], router)
	}
	address := "127.0.0.1"
	if len(where) > 0 {
		address = where[0]
	}
	listener, err := net.NewListenUDP("udp", address+":"+port)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return udp.NewServer(options.WithMux(router)).Serve(listener)
}

// Who is told of a change.
type observer struct {
	conn  mux.Conn
	token message.Token
}

// Over all transports, with a key of RFC 7252's cipher suite.
func serveMeasured(port int) error {
	var lock sync.Mutex
	var observers []observer
	body := make([]byte, 1<<20)
	router := mux.NewRouter()
	handlers := map[string]mux.HandlerFunc{
		"/bench":    func(w mux.ResponseWriter, r *mux.Message) { answer(w, codes.Content, bench) },
		"/mebibyte": func(w mux.ResponseWriter, r *mux.Message) { answer(w, codes.Content, body) },
		"/state": func(w mux.ResponseWriter, r *mux.Message) {
			lock.Lock()
			defer lock.Unlock()
			if r.Code() == codes.PUT {
				answer(w, codes.Changed, nil)
				// To send a confirmable message is to wait for its acknowledgement.
				for _, observer := range observers {
					go tell(observer, bench, uint32(time.Now().UnixMilli()&0xffffff))
				}
				return
			}
			answer(w, codes.Content, bench)
			if observe, err := r.Options().Observe(); err == nil && observe == 0 {
				observers = append(observers, observer{w.Conn(), bytes.Clone(r.Token())})
				w.Message().SetObserve(1)
			}
		},
	}
	for path, handler := range handlers {
		if err := router.Handle(path, handler); err != nil {
			return err
		}
	}
	key := func([]byte) ([]byte, error) { return []byte("secretPSK"), nil }
	secure := &piondtls.Config{
		PSK:          key,
		CipherSuites: []piondtls.CipherSuiteID{piondtls.TLS_PSK_WITH_AES_128_CCM_8},
		// Without any it refuses clients that would also speak SRTP.
		SRTPProtectionProfiles: []piondtls.SRTPProtectionProfile{piondtls.SRTP_AEAD_AES_128_GCM},
	}
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	streams, err := net.NewTCPListener("tcp", at(port))
	if err != nil {
		return err
	}
	sessions, err := net.NewDTLSListener("udp", at(port+1), secure)
	if err != nil {
		return err
	}
	go func() { panic(tcp.NewServer(options.WithMux(router)).Serve(streams)) }()
	go func() { panic(dtls.NewServer(options.WithMux(router)).Serve(sessions)) }()
	// Last: who asks it whether it is there asks over UDP.
	return coap.ListenAndServe("udp", at(port), router)
}

func tell(observer observer, body []byte, number uint32) {
	notification := observer.conn.AcquireMessage(observer.conn.Context())
	defer observer.conn.ReleaseMessage(notification)
	notification.SetCode(codes.Content)
	notification.SetType(message.Confirmable)
	notification.SetToken(observer.token)
	notification.SetObserve(number)
	notification.SetContentFormat(message.TextPlain)
	notification.SetBody(bytes.NewReader(body))
	if err := observer.conn.WriteMessage(notification); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func serveGroup(port, group, where string, router *mux.Router) error {
	listener, err := net.NewListenUDP("udp4", ":"+port)
	if err != nil {
		return err
	}
	at, err := gonet.InterfaceByName(where)
	if err != nil {
		return err
	}
	if err := listener.JoinGroup(at, &gonet.UDPAddr{IP: gonet.ParseIP(group)}); err != nil {
		return err
	}
	fmt.Println("ready")
	return udp.NewServer(options.WithMux(router)).Serve(listener)
}

func discover(where string) error {
	at, err := url.Parse(where)
	if err != nil {
		return err
	}
	listener, err := net.NewListenUDP("udp4", "")
	if err != nil {
		return err
	}
	server := udp.NewServer()
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return server.Discover(ctx, at.Host, at.Path, func(_ *client.Conn, answer *pool.Message) {
		body, err := answer.ReadBody()
		if err == nil {
			code := answer.Code()
			fmt.Printf("%d.%02d %s\n", code>>5, code&31, body)
		}
	})
}

func notify(to mux.Conn, token message.Token) {
	for count := uint32(2); to.Context().Err() == nil; count++ {
		notification := to.AcquireMessage(to.Context())
		notification.SetCode(codes.Content)
		notification.SetToken(token)
		notification.SetObserve(count)
		notification.SetContentFormat(message.TextPlain)
		notification.SetBody(strings.NewReader(fmt.Sprint(count)))
		err := to.WriteMessage(notification)
		to.ReleaseMessage(notification)
		if err != nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func askOften(ctx context.Context, how string, count int, path string, to *client.Conn) error {
	if how == "open" {
		done := make(chan error, count)
		for range count {
			go func() {
				_, err := to.Get(ctx, path)
				done <- err
			}()
		}
		var err error
		for range count {
			err = errors.Join(err, <-done)
		}
		return err
	}
	for range count {
		if how == "get" {
			if _, err := to.Get(ctx, path); err != nil {
				return err
			}
			continue
		}
		limited, cancel := context.WithTimeout(ctx, patience)
		request, err := to.NewGetRequest(limited, path)
		if err == nil {
			request.SetType(message.NonConfirmable)
			_, err = to.Do(request)
		}
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	return nil
}

func ask(method, where string, payload []byte) error {
	at, err := url.Parse(where)
	if err != nil {
		return err
	}
	how, many, isMany := strings.Cut(method, "*")
	count := 1
	if isMany {
		if count, err = strconv.Atoi(many); err != nil {
			return err
		}
	}
	var settings []udp.Option
	if how == "open" {
		// Its own timer, and as many open as there are.
		settings = append(settings, options.WithTransmission(uint32(count), 2*time.Second, 4),
			options.WithLimitClientParallelRequest(int64(count)), options.WithLimitClientEndpointParallelRequest(int64(count)))
	}
	to, err := udp.Dial(at.Host, settings...)
	if err != nil {
		return err
	}
	defer to.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if isMany {
		return askOften(ctx, how, count, at.Path, to)
	}
	var response *pool.Message
	switch method {
	case "get":
		response, err = to.Get(ctx, at.Path)
	case "put":
		response, err = to.Put(ctx, at.Path, message.TextPlain, bytes.NewReader(payload))
	case "post":
		response, err = to.Post(ctx, at.Path, message.TextPlain, bytes.NewReader(payload))
	case "delete":
		response, err = to.Delete(ctx, at.Path)
	case "observe":
		seen := make(chan string, 16)
		observation, err := to.Observe(ctx, at.Path, func(notification *pool.Message) {
			body, _ := notification.ReadBody()
			seen <- string(body)
		})
		if err != nil {
			return err
		}
		for range 3 {
			fmt.Println(<-seen)
		}
		return observation.Cancel(ctx)
	default:
		return fmt.Errorf("go-coap has no method %s", method)
	}
	if err != nil {
		return err
	}
	body, err := response.ReadBody()
	if err != nil {
		return err
	}
	code := response.Code()
	fmt.Printf("%d.%02d\n", code>>5, code&31)
	_, err = os.Stdout.Write(body)
	return err
}

func main() {
	var err error
	if os.Args[1] == "serve" {
		err = serve(os.Args[2], os.Args[3:])
	} else if os.Args[1] == "measured" {
		var port int
		if port, err = strconv.Atoi(os.Args[2]); err == nil {
			err = serveMeasured(port)
		}
	} else if os.Args[1] == "discover" {
		err = discover(os.Args[2])
	} else {
		var payload []byte
		if len(os.Args) > 3 && os.Args[3] == "-" {
			payload, err = io.ReadAll(os.Stdin)
		} else if len(os.Args) > 3 {
			payload = []byte(os.Args[3])
		}
		if err == nil {
			err = ask(os.Args[1], os.Args[2], payload)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// go-coap over TLS as a peer: `serve PORT CERTIFICATE KEY` or `METHOD URI AUTHORITY`. Without files over TCP.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/message/pool"
	"github.com/plgd-dev/go-coap/v3/mux"
	"github.com/plgd-dev/go-coap/v3/net"
	"github.com/plgd-dev/go-coap/v3/options"
	"github.com/plgd-dev/go-coap/v3/tcp"
	"github.com/plgd-dev/go-coap/v3/tcp/client"
	"github.com/plgd-dev/go-coap/v3/tcp/server"
)

// What it takes in one message unless set up otherwise.
func body() []byte {
	body := make([]byte, 1000)
	for i := range body {
		body[i] = byte(65 + i%26)
	}
	return body
}

func listen(at string, files []string) (server.Listener, error) {
	if len(files) == 0 {
		return net.NewTCPListener("tcp", at)
	}
	pair, err := tls.LoadX509KeyPair(files[0], files[1])
	if err != nil {
		return nil, err
	}
	return net.NewTLSListener("tcp", at, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"coap"}})
}

func serve(port string, files []string) error {
	router := mux.NewRouter()
	kept := []byte("secured")
	err := router.Handle("/store", mux.HandlerFunc(func(w mux.ResponseWriter, r *mux.Message) {
		if r.Code() == codes.PUT {
			kept, _ = r.ReadBody()
			_ = w.SetResponse(codes.Changed, message.TextPlain, nil)
			return
		}
		_ = w.SetResponse(codes.Content, message.TextPlain, bytes.NewReader(kept))
	}))
	if err != nil {
		return err
	}
	listener, err := listen("127.0.0.1:"+port, files)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return tcp.NewServer(options.WithMux(router)).Serve(listener)
}

func dial(at *url.URL, files []string) (*client.Conn, error) {
	if len(files) == 0 {
		return tcp.Dial(at.Host)
	}
	pem, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in " + files[0])
	}
	config := &tls.Config{RootCAs: trusted, ServerName: at.Hostname(), NextProtos: []string{"coap"}}
	return tcp.Dial(at.Host, options.WithTLS(config))
}

func ask(method, where string, files []string) error {
	at, err := url.Parse(where)
	if err != nil {
		return err
	}
	to, err := dial(at, files)
	if err != nil {
		return err
	}
	defer to.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var response *pool.Message
	if method == "put" {
		response, err = to.Put(ctx, at.Path, message.TextPlain, bytes.NewReader(body()))
	} else {
		response, err = to.Get(ctx, at.Path)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%d.%02d\n", response.Code()>>5, response.Code()&31)
	if response.Body() != nil {
		_, err = io.Copy(os.Stdout, response.Body())
	}
	return err
}

func main() {
	var err error
	if os.Args[1] == "serve" {
		err = serve(os.Args[2], os.Args[3:])
	} else {
		err = ask(os.Args[1], os.Args[2], os.Args[3:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

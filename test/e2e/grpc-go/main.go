// Verifies a key once over gRPC, repeating what was UNAVAILABLE. Prints the code and the attempts.
package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// rawCodec sends and receives messages as bytes, so that no generated code is needed.
type rawCodec struct{}

func (rawCodec) Name() string                        { return "proto" }
func (rawCodec) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = append([]byte(nil), data...)
	return nil
}

// attempts counts what is sent; a call that is repeated begins again.
type attempts struct{ begun atomic.Int32 }

func (*attempts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*attempts) HandleConn(context.Context, stats.ConnStats)                       {}
func (*attempts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (a *attempts) HandleRPC(_ context.Context, event stats.RPCStats) {
	if _, isBegin := event.(*stats.Begin); isBegin {
		a.begun.Add(1)
	}
}

func main() {
	address, key, serviceConfig := os.Args[1], os.Args[2], os.Args[3]
	counted := &attempts{}
	connection, err := grpc.NewClient(
		address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithStatsHandler(counted),
	)
	if err != nil {
		panic(err)
	}
	// VerifyKeyRequest with nothing but `key`, its field 1.
	request := append([]byte{0x0a, byte(len(key))}, key...)
	var answer []byte
	const method = "/latchkey.v1.KeysService/VerifyKey"
	err = connection.Invoke(context.Background(), method, &request, &answer, grpc.ForceCodec(rawCodec{}))
	fmt.Printf(`{"code": %d, "attempts": %d}`, status.Code(err), counted.begun.Load())
}

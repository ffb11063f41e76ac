import java.net.InetSocketAddress;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapHandler;
import org.eclipse.californium.core.CoapObserveRelation;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.MediaTypeRegistry;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.TcpConfig;
import org.eclipse.californium.elements.config.UdpConfig;
import org.eclipse.californium.elements.tcp.netty.TcpServerConnector;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.cipher.CipherSuite;
import org.eclipse.californium.scandium.dtls.pskstore.AdvancedSinglePskStore;

/**
 * Californium as a peer: {@code serve PORT}, or {@code serve PORT DEDUPLICATOR} for another way to detect duplicates;
 * {@code measured PORT}, which serves over TCP, too, and over DTLS at the port behind it;
 * {@code get URI}, {@code put URI -} of what is read, {@code observe URI} until the third notification, and so many GETs: {@code get*N URI} one after the other,
 * {@code non*N URI} of those that are not confirmable, {@code open*N URI} all at once.
 */
public final class Peer {
  private static final byte[] BENCH = "0123456789012345678901234567890123456789".getBytes();
  /** For an answer to what is not confirmable, in milliseconds. */
  private static final long PATIENCE = 8_000;

  private Peer() {}

  /** Forty bytes that never change. */
  private static final class Bench extends CoapResource {
    Bench() {
      super("bench");
    }

    @Override
    public void handleGET(CoapExchange exchange) {
      exchange.respond(ResponseCode.CONTENT, BENCH);
    }
  }

  /** How often it was asked. */
  private static final class Tally extends CoapResource {
    private final AtomicInteger asked = new AtomicInteger();

    Tally() {
      super("tally");
    }

    @Override
    public void handleGET(CoapExchange exchange) {
      exchange.respond(Integer.toString(asked.incrementAndGet()));
    }
  }

  /** A mebibyte, in blocks. */
  private static final class Mebibyte extends CoapResource {
    private final byte[] body = new byte[1 << 20];

    Mebibyte() {
      super("mebibyte");
    }

    @Override
    public void handleGET(CoapExchange exchange) {
      exchange.respond(ResponseCode.CONTENT, body);
    }
  }

  /** Changes with each PUT, of which its observers are told. */
  private static final class State extends CoapResource {
    State() {
      super("state");
      setObservable(true);
      setObserveType(Type.CON);
    }

    @Override
    public void handleGET(CoapExchange exchange) {
      exchange.respond(ResponseCode.CONTENT, BENCH);
    }

    @Override
    public void handlePUT(CoapExchange exchange) {
      exchange.respond(ResponseCode.CHANGED);
      changed();
    }
  }

  /** Counts the answers and failures of requests that are open. */
  private static final class Counting implements CoapHandler {
    final CountDownLatch left;
    private boolean failed;

    Counting(int count) {
      left = new CountDownLatch(count);
    }

    @Override
    public void onLoad(CoapResponse response) {
      left.countDown();
    }

    @Override
    public void onError() {
      failed = true;
      left.countDown();
    }

    void await() throws InterruptedException {
      left.await();
      if (failed) {
        throw new IllegalStateException("no answer");
      }
    }
  }

  private static void serve(Configuration configuration, String[] arguments) {
    if (arguments.length > 2) {
      configuration.set(CoapConfig.DEDUPLICATOR, arguments[2]);
    }
    CoapServer server = new CoapServer(configuration);
    server.addEndpoint(
        CoapEndpoint.builder()
            .setConfiguration(configuration)
            .setInetSocketAddress(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[1])))
            .build());
    server.add(new Bench(), new Tally());
    server.start();
    System.out.println("ready");
  }

  /** Over all transports, with a key of RFC 7252's cipher suite and blocks of 1,024 bytes. */
  private static void serveMeasured(int port) {
    Configuration configuration = Configuration.createStandardWithoutFile();
    configuration.set(CoapConfig.MAX_RESOURCE_BODY_SIZE, 1 << 20);
    configuration.set(CoapConfig.PREFERRED_BLOCK_SIZE, 1 << 10).set(CoapConfig.MAX_MESSAGE_SIZE, 1 << 10);
    configuration.setAsList(DtlsConfig.DTLS_CIPHER_SUITES, CipherSuite.TLS_PSK_WITH_AES_128_CCM_8);
    InetSocketAddress plain = new InetSocketAddress("127.0.0.1", port);
    DtlsConnectorConfig secure =
        DtlsConnectorConfig.builder(configuration)
            .setAddress(new InetSocketAddress("127.0.0.1", port + 1))
            .setAdvancedPskStore(new AdvancedSinglePskStore("sensor", "secretPSK".getBytes()))
            .build();
    CoapServer server = new CoapServer(configuration);
    server.addEndpoint(
        CoapEndpoint.builder()
            .setConfiguration(configuration)
            .setConnector(new TcpServerConnector(plain, configuration))
            .build());
    server.addEndpoint(
        CoapEndpoint.builder().setConfiguration(configuration).setConnector(new DTLSConnector(secure)).build());
    // Last: who asks it whether it is there asks over UDP.
    server.addEndpoint(
        CoapEndpoint.builder().setConfiguration(configuration).setInetSocketAddress(plain).build());
    server.add(new Bench(), new Tally(), new Mebibyte(), new State());
    server.start();
    System.out.println("ready");
  }

  private static void ask(Configuration configuration, String method, String uri) throws Exception {
    CoapClient client = new CoapClient(uri);
    client.setEndpoint(CoapEndpoint.builder().setConfiguration(configuration).build());
    // The message layer says when it gives up.
    client.setTimeout(0L);
    String[] words = method.split("\\*");
    int count = words.length > 1 ? Integer.parseInt(words[1]) : 1;
    switch (words[0]) {
      case "get":
        for (int number = 0; number < count; number++) {
          if (client.get() == null) {
            throw new IllegalStateException("no answer");
          }
        }
        break;
      case "put":
        CoapResponse put = client.put(System.in.readAllBytes(), MediaTypeRegistry.APPLICATION_OCTET_STREAM);
        if (put == null) {
          throw new IllegalStateException("no answer");
        }
        System.out.println(put.getCode());
        break;
      case "non":
        client.useNONs().setTimeout(PATIENCE);
        for (int number = 0; number < count; number++) {
          client.get();
        }
        break;
      case "open":
        Counting open = new Counting(count);
        for (int number = 0; number < count; number++) {
          client.get(open);
        }
        open.await();
        break;
      case "observe":
        Counting notified = new Counting(3);
        CoapObserveRelation relation = client.observeAndWait(notified);
        notified.await();
        relation.proactiveCancel();
        TimeUnit.SECONDS.sleep(1);
        break;
      default:
        throw new IllegalArgumentException(method);
    }
  }

  /** Serves until killed, or asks. */
  public static void main(String[] arguments) throws Exception {
    if (arguments.length < 2) {
      System.err.println("serve PORT [DEDUPLICATOR], measured PORT, or METHOD[*N] URI");
      System.exit(1);
    }
    CoapConfig.register();
    UdpConfig.register();
    if (arguments[0].equals("measured")) {
      TcpConfig.register();
      DtlsConfig.register();
      serveMeasured(Integer.parseInt(arguments[1]));
      return;
    }
    Configuration configuration = Configuration.createStandardWithoutFile();
    if (arguments[0].equals("serve")) {
      serve(configuration, arguments);
      return;
    }
    try {
      ask(configuration, arguments[0], arguments[1]);
    } catch (IllegalStateException failed) {
      System.err.println(failed.getMessage());
      System.exit(1);
    }
    System.exit(0);
  }
}

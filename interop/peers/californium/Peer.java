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
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/**
 * Californium as a peer: {@code serve PORT}, {@code serve PORT ADDRESS}, or {@code serve PORT ADDRESS DEDUPLICATOR} for
 * another way to detect duplicates; {@code get URI}, {@code observe URI} until the third notification, and so many GETs:
 * {@code get*N URI} one after the other, {@code non*N URI} of those that are not confirmable, {@code open*N URI} all at once.
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

  /** Acknowledges first, and answers a second later. */
  private static final class Separate extends CoapResource {
    Separate() {
      super("separate");
    }

    @Override
    public void handleGET(CoapExchange exchange) {
      exchange.accept();
      try {
        Thread.sleep(1_000);
      } catch (InterruptedException ended) {
        Thread.currentThread().interrupt();
      }
      exchange.respond("later");
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

  private static CoapServer serving(Configuration configuration, InetSocketAddress address) {
    CoapServer server = new CoapServer(configuration);
    server.addEndpoint(CoapEndpoint.builder().setConfiguration(configuration).setInetSocketAddress(address).build());
    server.add(new Bench(), new Separate(), new Tally());
    server.start();
    return server;
  }

  private static void serve(Configuration configuration, String[] arguments) throws Exception {
    if (arguments.length > 3) {
      configuration.set(CoapConfig.DEDUPLICATOR, arguments[3]);
    }
    InetSocketAddress address =
        new InetSocketAddress(arguments.length > 2 ? arguments[2] : "127.0.0.1", Integer.parseInt(arguments[1]));
    // A first request loads classes for seconds: that one is its own.
    InetSocketAddress loopback = new InetSocketAddress("127.0.0.1", 0);
    CoapServer first = serving(configuration, loopback);
    int port = first.getEndpoints().get(0).getAddress().getPort();
    ask(configuration, loopback, "get", "coap://127.0.0.1:" + port + "/separate");
    first.destroy();
    serving(configuration, address);
    System.out.println("ready");
  }

  private static void ask(Configuration configuration, InetSocketAddress from, String method, String uri)
      throws Exception {
    CoapClient client = new CoapClient(uri);
    CoapEndpoint endpoint = CoapEndpoint.builder().setConfiguration(configuration).setInetSocketAddress(from).build();
    client.setEndpoint(endpoint);
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
    endpoint.destroy();
  }

  /** Serves until killed, or asks. */
  public static void main(String[] arguments) throws Exception {
    if (arguments.length < 2) {
      System.err.println("serve PORT [ADDRESS [DEDUPLICATOR]], or METHOD[*N] URI");
      System.exit(1);
    }
    CoapConfig.register();
    UdpConfig.register();
    Configuration configuration = Configuration.createStandardWithoutFile();
    if (arguments[0].equals("serve")) {
      serve(configuration, arguments);
      return;
    }
    try {
      ask(configuration, new InetSocketAddress(0), arguments[0], arguments[1]);
    } catch (IllegalStateException failed) {
      System.err.println(failed.getMessage());
      System.exit(1);
    }
    System.exit(0);
  }
}

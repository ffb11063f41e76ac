import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicInteger;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/** Californium as a peer: {@code serve PORT}, or {@code serve PORT DEDUPLICATOR} for another way to detect duplicates. */
public final class Peer {
  private static final byte[] BENCH = "0123456789012345678901234567890123456789".getBytes();

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

  /** Serves until killed. */
  public static void main(String[] arguments) {
    if (arguments.length < 2 || !arguments[0].equals("serve")) {
      System.err.println("serve PORT [DEDUPLICATOR]");
      System.exit(1);
    }
    CoapConfig.register();
    UdpConfig.register();
    Configuration configuration = Configuration.createStandardWithoutFile();
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
}

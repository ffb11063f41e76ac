import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.atomic.AtomicInteger;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.MediaTypeRegistry;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/**
 * Californium as the clients or the server of a run: {@code serve ADDRESS BYTES RESOURCE} or {@code ask URI CLIENTS EXCHANGES FILE MODE COPIES},
 * where MODE names its congestion control and COPIES is MAX_RETRANSMIT. Run by {@code java -cp 'lib/*' Californium.java}.
 */
public final class Californium {
  /** Longer than any exchange with all its copies can last. */
  private static final long PATIENCE_MS = 1_000_000;

  private Californium() {}

  private static Configuration configuration(String mode) {
    CoapConfig.register();
    UdpConfig.register();
    Configuration configuration = Configuration.createStandardWithoutFile();
    configuration.set(CoapConfig.CONGESTION_CONTROL_ALGORITHM, CoapConfig.CongestionControlMode.valueOf(mode));
    configuration.set(UdpConfig.UDP_RECEIVER_THREAD_COUNT, 1);
    configuration.set(UdpConfig.UDP_SENDER_THREAD_COUNT, 1);
    return configuration;
  }

  private static void serve(String address, int length, String resource) {
    byte[] payload = new byte[length];
    Arrays.fill(payload, (byte) 'x');
    Configuration configuration = configuration("NULL");
    CoapServer server = new CoapServer(configuration);
    server.addEndpoint(
        CoapEndpoint.builder()
            .setConfiguration(configuration)
            .setInetSocketAddress(new InetSocketAddress(address, 5683))
            .build());
    server.add(
        new CoapResource(resource) {
          @Override
          public void handleGET(CoapExchange exchange) {
            exchange.respond(ResponseCode.CONTENT, payload, MediaTypeRegistry.TEXT_PLAIN);
          }
        });
    server.start();
  }

  private static int ask(String uri, int clients, int exchanges, String mode, int copies) throws Exception {
    Configuration configuration = configuration(mode);
    configuration.set(CoapConfig.MAX_RETRANSMIT, copies);
    ScheduledExecutorService shared = Executors.newScheduledThreadPool(4);
    AtomicInteger answered = new AtomicInteger();
    List<CoapEndpoint> endpoints = new ArrayList<>();
    for (int number = 0; number < clients; number++) {
      CoapEndpoint endpoint = CoapEndpoint.builder().setConfiguration(configuration).setPort(0).build();
      endpoint.setExecutors(shared, shared);
      endpoint.start();
      endpoints.add(endpoint);
    }
    List<Thread> asking = new ArrayList<>();
    for (CoapEndpoint endpoint : endpoints) {
      asking.add(
          new Thread(
              () -> {
                CoapClient client = new CoapClient(uri).setEndpoint(endpoint).setTimeout(PATIENCE_MS);
                for (int number = 0; number < exchanges; number++) {
                  try {
                    CoapResponse response = client.get();
                    if (response != null && response.isSuccess()) {
                      answered.incrementAndGet();
                    }
                  } catch (Exception unanswered) {
                    // the next one
                  }
                }
              }));
    }
    for (Thread thread : asking) {
      thread.start();
    }
    for (Thread thread : asking) {
      thread.join();
    }
    return answered.get();
  }

  /** Serves until killed, or asks and leaves how many were answered. */
  public static void main(String[] arguments) throws Exception {
    if (arguments[0].equals("serve")) {
      serve(arguments[1], Integer.parseInt(arguments[2]), arguments[3]);
      return;
    }
    int clients = Integer.parseInt(arguments[2]);
    int answered = ask(arguments[1], clients, Integer.parseInt(arguments[3]), arguments[5], Integer.parseInt(arguments[6]));
    Files.writeString(Path.of(arguments[4]), "{\"answered\": " + answered + "}");
    System.exit(0);
  }
}

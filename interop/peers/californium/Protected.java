import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.Option;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.cose.AlgorithmID;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;
import org.eclipse.californium.elements.util.Bytes;
import org.eclipse.californium.elements.util.StringUtil;
import org.eclipse.californium.oscore.ContextRederivation.PHASE;
import org.eclipse.californium.oscore.HashMapCtxDB;
import org.eclipse.californium.oscore.OSCoreCoapStackFactory;
import org.eclipse.californium.oscore.OSCoreCtx;
import org.eclipse.californium.oscore.OSCoreResource;

/**
 * Californium under OSCORE as a peer: {@code serve PORT CONTEXT}, or {@code get URI CONTEXT}, {@code put URI CONTEXT} with a body, or
 * {@code observe URI CONTEXT} until the fourth representation.
 *
 * <p>CONTEXT is a file of {@code millpond oscore new}. Californium keeps no sequence numbers beyond its process: a file beside it does.
 */
public final class Protected {
  private static final int WINDOW = 32;
  private static final int LONGEST_BODY = 1 << 16;
  /** More than a process uses. */
  private static final int GAP = 10_000;
  private static final int ECHO = 252;
  private static final byte[] LARGE = large();

  private Protected() {}

  private static byte[] large() {
    byte[] body = new byte[20_000];
    for (int i = 0; i < body.length; i++) {
      body[i] = (byte) (65 + i % 26);
    }
    return body;
  }

  /** Keeps what it is given. */
  private static final class Store extends OSCoreResource {
    private byte[] kept = "protected".getBytes(StandardCharsets.US_ASCII);

    Store() {
      super("store", true);
    }

    @Override
    public void handleGET(CoapExchange exchange) {
      exchange.respond(ResponseCode.CONTENT, kept);
    }

    @Override
    public void handlePUT(CoapExchange exchange) {
      kept = exchange.getRequestPayload();
      exchange.respond(ResponseCode.CHANGED);
    }
  }

  /** Grows. */
  private static final class Count extends OSCoreResource {
    private final AtomicInteger count = new AtomicInteger();

    Count() {
      super("count", true);
      setObservable(true);
      TimerTask grow =
          new TimerTask() {
            @Override
            public void run() {
              count.incrementAndGet();
              changed();
            }
          };
      new Timer(true).schedule(grow, 200, 200);
    }

    @Override
    public void handleGET(CoapExchange exchange) {
      exchange.respond(Integer.toString(count.get()));
    }
  }

  private static OSCoreCtx context(Path file, boolean asks) throws Exception {
    Map<String, String> given = new HashMap<>();
    for (String line : Files.readAllLines(file)) {
      if (!line.startsWith("#")) {
        String[] parts = line.split(" = ");
        given.put(parts[0], parts[1].replace("\"", ""));
      }
    }
    OSCoreCtx context =
        new OSCoreCtx(
            StringUtil.hex2ByteArray(given.get("secret")),
            asks,
            AlgorithmID.AES_CCM_16_64_128,
            StringUtil.hex2ByteArray(given.get("sender_id")),
            StringUtil.hex2ByteArray(given.get("recipient_id")),
            AlgorithmID.HKDF_HMAC_SHA_256,
            WINDOW,
            StringUtil.hex2ByteArray(given.get("salt")),
            null,
            LONGEST_BODY);
    if (given.containsKey("derive_anew")) {
      context.setContextRederivationEnabled(true);
      if (asks) {
        context.setContextRederivationPhase(PHASE.CLIENT_INITIATE);
      }
      return context;
    }
    Path numbers = file.resolveSibling(file.getFileName() + ".californium");
    int first = Files.exists(numbers) ? Integer.parseInt(Files.readString(numbers)) : 0;
    Files.writeString(numbers, Integer.toString(first + GAP));
    context.setSenderSeq(first);
    return context;
  }

  private static CoapEndpoint.Builder endpoint(HashMapCtxDB contexts) {
    return CoapEndpoint.builder()
        .setConfiguration(Configuration.createStandardWithoutFile().set(CoapConfig.MAX_RESOURCE_BODY_SIZE, LONGEST_BODY))
        .setCoapStackFactory(new OSCoreCoapStackFactory())
        .setCustomCoapStackArgument(contexts);
  }

  private static void serve(int port, Path file) throws Exception {
    HashMapCtxDB contexts = new HashMapCtxDB();
    contexts.addContext(context(file, false));
    CoapServer server = new CoapServer(Configuration.createStandardWithoutFile());
    server.addEndpoint(endpoint(contexts).setInetSocketAddress(new InetSocketAddress("127.0.0.1", port)).build());
    server.add(new Store(), new Count());
    server.start();
    System.out.println("ready");
  }

  private static Request request(String method) {
    Request request = new Request(Code.valueOf(method.toUpperCase()));
    request.getOptions().setOscore(Bytes.EMPTY);
    if (method.equals("put")) {
      request.setPayload(LARGE);
    }
    return request;
  }

  /**
   * Prints the code and four representations, each in a line. As the endpoint hands them over: its client would take them for old, since
   * their order is that of their sequence numbers and their Observe option is empty (RFC 8613 section 4.1.3.5.2).
   */
  private static void observe(String uri, Path file) throws Exception {
    HashMapCtxDB contexts = new HashMapCtxDB();
    contexts.addContext(uri, context(file, true));
    CoapEndpoint endpoint = endpoint(contexts).build();
    BlockingQueue<Response> came = new LinkedBlockingQueue<>();
    endpoint.addNotificationListener((request, response) -> came.add(response));
    endpoint.start();
    Request register = request("get").setURI(uri).setObserve();
    register.send(endpoint);
    Response first = register.waitForResponse();
    System.out.println(first.getCode());
    System.out.println(first.getPayloadString());
    for (int further = 0; first.isSuccess() && further < 3; further++) {
      System.out.println(came.take().getPayloadString());
    }
  }

  private static void ask(String method, String uri, Path file) throws Exception {
    HashMapCtxDB contexts = new HashMapCtxDB();
    contexts.addContext(uri, context(file, true));
    CoapClient client = new CoapClient(uri);
    client.setEndpoint(endpoint(contexts).build());
    // The message layer says when it gives up.
    client.setTimeout(0L);
    CoapResponse response = client.advanced(request(method));
    for (Option echo : response.getOptions().getOthers()) {
      // It leaves to applications what RFC 9175 has a client do.
      if (echo.getNumber() == ECHO && response.getCode() == ResponseCode.UNAUTHORIZED) {
        Request again = request(method);
        again.getOptions().addOption(echo);
        response = client.advanced(again);
      }
    }
    System.out.println(response.getCode());
    System.out.write(response.getPayload());
    System.out.flush();
  }

  /** Serves until killed, or asks. */
  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 3) {
      System.err.println("serve PORT CONTEXT, or METHOD URI CONTEXT");
      System.exit(1);
    }
    CoapConfig.register();
    UdpConfig.register();
    Path file = Path.of(arguments[2]);
    if (arguments[0].equals("serve")) {
      serve(Integer.parseInt(arguments[1]), file);
      return;
    }
    if (arguments[0].equals("observe")) {
      observe(arguments[1], file);
    } else {
      ask(arguments[0], arguments[1], file);
    }
    System.exit(0);
  }
}

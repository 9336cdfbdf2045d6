internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// The errors that a program receives.
@Suite(.timeLimit(.minutes(5))) struct ErrorTests {
    private let session: SessionManager

    init() throws {
        session = SessionManager(engine: try TransferEngine())
    }

    @Test func `the errno of a refused connection is available through any error type`() async throws {
        let port = try RefusingPort()
        let error = await session.request(port.url).response().error
        let urlError = try #require(error as? URLError)
        #expect(urlError.code == .cannotConnectToHost)
        #expect(urlError.failingURL?.host == "127.0.0.1")
        #expect(error?.transferFailure?.osErrno == ECONNREFUSED)
        #expect(urlError.localizedDescription.hasSuffix(": Connection refused"))
        #expect((urlError as NSError).transferFailure?.code == 7)
        #expect((error as NSError?)?.transferFailure == error?.transferFailure)
    }

    @Test func `other errors have no transfer failure`() {
        #expect(URLError(.cancelled).transferFailure == nil)
        #expect(AFError.sessionDeinitialized.transferFailure == nil)
        #expect(CancellationError().transferFailure == nil)
    }

    @Test func `an unresolvable name is cannotFindHost`() async {
        // The name has an empty label. It is invalid, so no DNS query is sent.
        let error = await session.request("http://netwatch..invalid/").response().error
        #expect((error as? URLError)?.code == .cannotFindHost)
        #expect(error?.transferFailure?.code == 6)
        #expect(error?.transferFailure?.resolverCode != 0)
        #expect(error?.localizedDescription.hasPrefix("could not resolve `netwatch..invalid`: ") == true)
    }

    @Test func `the text of an error contains its message`() async throws {
        let error = try #require(await session.request("http://netwatch..invalid/").response().error)
        #expect("\(error)".contains("could not resolve `netwatch..invalid`: "), "\(error)")
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let request = session.request(server.url)
        request.cancel()
        let cancelled = try #require(await request.response().error)
        #expect((cancelled as? URLError)?.code == .cancelled && !"\(cancelled)".contains("(null)"))
    }

    @Test func `an invalid URL is the handler's error, and nothing is sent`() async {
        let request = session.request("")
        let response = await request.responseData()
        #expect((response.error as? AFError)?.isInvalidURLError == true)
        #expect(response.request == nil)
        #expect(response.data == Data())
        #expect(request.request == nil)
    }

    @Test(arguments: [
        ("", "it is empty"), ("http://[::1", "it cannot be parsed"),
        ("http://h:99999/", "port 99999 is not in 0 to 65535"), ("http://a%20b/", "character"),
    ])
    func `the description of an invalid URL contains the reason`(url: String, words: String) async {
        let text = await session.request(url).response().error?.localizedDescription ?? ""
        #expect(text.hasPrefix("The URL `\(url)` is not valid: ") && text.contains(words))
    }

    @Test func `a scheme other than http and https is refused, and the error contains the URL`() async {
        let error = await session.request("ftp://127.0.0.1/").response().error as? AFError
        #expect(error?.isURLRequestValidationError == true)
        #expect(error?.url?.absoluteString == "ftp://127.0.0.1/")
    }

    @Test func `an error that prevents the request is the handler's error`() async {
        struct Broken: URLRequestConvertible {
            func asURLRequest() throws -> URLRequest { throw CancellationError() }
        }
        #expect(await session.request(Broken()).response().error is CancellationError)
    }

    @Test func `missing data is an error and empty data is not`() {
        let missing = Request.serializeResponseData(response: nil, data: nil, error: nil)
        #expect((missing.error as? AFError)?.isResponseSerializationError == true)
        #expect(Request.serializeResponseData(response: nil, data: Data(), error: nil).value == Data())
        let failed = Request.serializeResponseData(response: nil, data: Data(), error: CancellationError())
        #expect(failed.error is CancellationError)
    }

    @Test(
        arguments: [
            (1, 0, .prepare, .unsupportedURL), (1, 0, .response, .badServerResponse),
            (3, 0, .prepare, .badURL),
            (6, 0, .resolve, .cannotFindHost), (7, ECONNREFUSED, .connect, .cannotConnectToHost),
            (7, ENETUNREACH, .connect, .notConnectedToInternet),
            (7, ENETDOWN, .connect, .notConnectedToInternet),
            (7, EHOSTUNREACH, .connect, .notConnectedToInternet), (18, 0, .response, .networkConnectionLost),
            (28, 0, .connect, .timedOut), (35, 0, .tls, .secureConnectionFailed),
            (42, 0, .request, .cancelled),
            (52, 0, .response, .networkConnectionLost), (56, 0, .response, .networkConnectionLost),
            (63, 0, .response, .dataLengthExceedsMaximum), (92, 0, .response, .networkConnectionLost),
            (100, 0, .response, .cannotParseResponse), (99, 0, .request, .unknown),
        ] as [(Int32, Int32, TransferFailure.Phase, URLError.Code)]
    )
    func `a curl code is mapped to the closest URLError`(
        code: Int32,
        errno: Int32,
        phase: TransferFailure.Phase,
        expected: URLError.Code
    ) {
        let failure = TransferFailure(code: code, osErrno: errno, phase: phase, message: "test")
        let error = failure.error(for: nil)
        #expect((error as? URLError)?.code == expected)
        #expect(error.transferFailure == failure)
    }

    @Test(
        arguments: [
            (35, "sslv3 alert bad certificate", .clientCertificateRejected),
            (56, "tlsv1 alert unknown ca", .clientCertificateRejected),
            (56, "tlsv13 alert certificate required", .clientCertificateRequired),
            (55, "ssl/tls alert certificate expired", .clientCertificateRejected),
            (35, "sslv3 alert handshake failure", .secureConnectionFailed),
            (56, "Connection reset by peer", .networkConnectionLost),
            (7, "alert certificate required", .cannotConnectToHost),
        ] as [(Int32, String, URLError.Code)]
    )
    func `a TLS alert about the client certificate is mapped to its URLError`(
        code: Int32,
        words: String,
        expected: URLError.Code
    ) {
        let message = "OpenSSL SSL_read: error:0A00045C:SSL routines::\(words), errno 0"
        let failure = TransferFailure(code: code, phase: .response, message: message)
        #expect((failure.error(for: nil) as? URLError)?.code == expected)
    }
}

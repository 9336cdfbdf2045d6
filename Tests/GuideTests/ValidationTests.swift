import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// The examples in the guides' section "Response Validation".
@Suite(.timeLimit(.minutes(5))) struct ValidationTests {
    private struct Refused: Error {}

    // MARK: Validation

    @Test func `without validation every complete response is a success`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            ClientCore.request("\(httpbin.url)/status/500").responseData(completionHandler: $0)
        }
        #expect(response.result.isSuccess)
        #expect(response.response?.statusCode == 500)
    }

    @Test(arguments: [200, 404])
    func `manual validation checks the status`(status: Int) async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            ClientCore.request("\(httpbin.url)/status/\(status)")
                .validate(statusCode: 200..<300)
                .validate(contentType: ["application/json"])
                .responseData(completionHandler: $0)
        }
        #expect(response.result.isSuccess == (status == 200))
        #expect((response.error as? AFError)?.responseCode == (status == 200 ? nil : status))
    }

    @Test(arguments: [
        ("application/json", true), ("application/*", true), ("*/json", true), ("*/*", true),
        ("text/html", false), ("image/*", false),
    ])
    func `manual validation checks the content type`(type: String, isAccepted: Bool) async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            ClientCore.request("\(httpbin.url)/get")
                .validate(contentType: [type]).responseData(completionHandler: $0)
        }
        #expect(response.result.isSuccess == isAccepted)
        let error = response.error as? AFError
        #expect(error?.responseContentType == (isAccepted ? nil : "application/json"))
        #expect(error?.acceptableContentTypes == (isAccepted ? nil : [type]))
    }

    @Test func `an empty body matches every type, and a body without a type only the wildcard`() async throws
    {
        let server = try ScriptedServer { $0.target == "/empty" ? .respond("") : .respond("x") }
        func error(_ path: String, _ type: String) async -> AFError? {
            await once {
                ClientCore.request(server.url + path)
                    .validate(contentType: [type]).responseData(completionHandler: $0)
            }
            .error as? AFError
        }
        #expect(await error("/empty", "image/png") == nil)
        #expect(await error("/full", "*/*") == nil)
        guard case .responseValidationFailed(.missingContentType)? = await error("/full", "image/png") else {
            Issue.record("a body without a type was accepted")
            return
        }
    }

    @Test func `automatic validation checks the status and the accepted types`() async throws {
        let httpbin = try await HTTPBin.shared()
        func response(_ path: String, accept: String) async -> DataResponse<Data> {
            await once {
                ClientCore.request(httpbin.url + path, headers: ["Accept": accept])
                    .validate().responseData(completionHandler: $0)
            }
        }
        #expect(await response("/get", accept: "text/html, application/json").result.isSuccess)
        let refused = await response("/get", accept: "text/html").error as? AFError
        #expect(refused?.responseContentType == "application/json")
        let failed = await response("/status/503", accept: "*/*").error as? AFError
        #expect(failed?.responseCode == 503)
    }

    @Test func `the first failed validation is the error, and later ones are not called`() async throws {
        let httpbin = try await HTTPBin.shared()
        let asked = Recorder<Int>()
        let response = await once {
            ClientCore.request("\(httpbin.url)/status/418")
                .validate { request, response, data in
                    asked.record(1)
                    return response.statusCode == 418 ? .failure(Refused()) : .success
                }
                .validate { _, _, _ in
                    asked.record(2)
                    return .success
                }
                .validate()
                .responseJSON(completionHandler: $0)
        }
        #expect(response.error is Refused)
        #expect(asked.values == [1])
    }

    @Test func `a closure receives the request and the body`() async throws {
        let httpbin = try await HTTPBin.shared()
        let seen = Recorder<String>()
        let response = await once {
            ClientCore.request("\(httpbin.url)/bytes/10")
                .validate { request, response, data in
                    seen.record("\(request?.url?.path ?? "") \(response.statusCode) \(data?.count ?? -1)")
                    return .success
                }
                .responseData(completionHandler: $0)
        }
        #expect(response.result.isSuccess)
        #expect(seen.values == ["/bytes/10 200 10"])
    }

    @Test func `a download's file is validated before it is moved`() async throws {
        let httpbin = try await HTTPBin.shared()
        let scratch = try ScratchDirectory()
        let place = URL(fileURLWithPath: scratch.file("bytes"))
        let seen = Recorder<Int>()
        let session = sessionThatWaits()
        let response = await once {
            session.download("\(httpbin.url)/bytes/1000") { _, _ in (place, []) }
                .validate(contentType: ["application/*"])
                .validate { _, _, temporaryURL, destinationURL in
                    let data = temporaryURL.flatMap { try? Data(contentsOf: $0) }
                    seen.record(data?.count ?? -1)
                    return destinationURL == nil ? .success : .failure(Refused())
                }
                .responseData(completionHandler: $0).resume()
        }
        #expect(response.value?.count == 1000)
        #expect(seen.values == [1000])
        #expect(response.destinationURL == place)
    }

    @Test func `a download that fails validation replaces nothing`() async throws {
        let httpbin = try await HTTPBin.shared()
        let scratch = try ScratchDirectory()
        let place = URL(fileURLWithPath: try scratch.write(Array("old".utf8), to: "report"))
        let session = sessionThatWaits()
        let response = await once {
            session.download("\(httpbin.url)/status/418") { _, _ in (place, [.removePreviousFile]) }
                .validate().response(completionHandler: $0).resume()
        }
        #expect((response.error as? AFError)?.responseCode == 418)
        #expect(response.destinationURL == nil)
        #expect(try String(contentsOf: place, encoding: .utf8) == "old")
        response.temporaryURL.map { try? FileManager.default.removeItem(at: $0) }
    }

    /// Returns a session whose requests must be resumed by hand. Otherwise a download may finish, and its file may be
    /// moved, before the test has added the validation.
    private func sessionThatWaits() -> SessionManager {
        let session = SessionManager()
        session.startRequestsImmediately = false
        return session
    }
}

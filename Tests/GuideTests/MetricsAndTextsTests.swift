import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// The examples in the guides' sections "Statistical Metrics" and "cURL Command Output".
@Suite(.timeLimit(.minutes(5))) struct MetricsAndTextsTests {
    @Test func `every response has a timeline`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            ClientCore.request("\(httpbin.url)/get").responseJSON(completionHandler: $0)
        }
        let timeline = response.timeline
        #expect(timeline.latency > 0)
        #expect(timeline.latency <= timeline.requestDuration)
        #expect(timeline.serializationDuration > 0)
        #expect(
            abs(timeline.requestDuration + timeline.serializationDuration - timeline.totalDuration) < 1e-6
        )
        #expect(abs(timeline.requestStartTime - Date().timeIntervalSinceReferenceDate) < 60)
        let pattern = #/Timeline: { "Latency": \d+\.\d{3} secs, "Request Duration": \d+\.\d{3} secs, /#
        #expect("\(timeline)".prefixMatch(of: pattern) != nil)
    }

    @Test func `the timeline covers all attempts`() async throws {
        let server = try ScriptedServer { $0.number < 2 ? .respond(status: 503) : .respond("") }
        let sessionManager = SessionManager(configuration: .ephemeral)
        let failed = Recorder<TimeInterval>()
        sessionManager.retrier = Retrying { request in
            failed.record(Date().timeIntervalSinceReferenceDate)
            return (request.retryCount < 1, 0)
        }
        let response = await once {
            sessionManager.request(server.url).validate().response(completionHandler: $0)
        }
        #expect(response.error == nil)
        let moment = try #require(failed.values.first)
        #expect(response.timeline.requestStartTime < moment)
        #expect(response.timeline.initialResponseTime > moment)
    }

    @Test func `every response has metrics`() async throws {
        let httpbin = try await HTTPBin.shared()
        let sessionManager = SessionManager(configuration: .ephemeral)
        let response = await once {
            sessionManager.request("\(httpbin.url)/bytes/1000").responseData(completionHandler: $0)
        }
        let metrics = try #require(response.metrics)
        let transaction = try #require(metrics.transactionMetrics.first)
        #expect(metrics.transactionMetrics.count == 1)
        #expect(transaction.remoteAddress == "127.0.0.1")
        #expect(transaction.remotePort == URL(string: httpbin.url)?.port)
        #expect(transaction.networkProtocolName == "http/1.1")
        #expect(transaction.countOfResponseBodyBytesReceived == 1000)
        #expect(transaction.response?.statusCode == 200)
        let dates = [
            transaction.fetchStartDate, transaction.requestStartDate, transaction.requestEndDate,
            transaction.responseStartDate, transaction.responseEndDate,
        ]
        .compactMap { $0 }
        #expect(dates.count == 5)
        #expect(dates == dates.sorted())
        #expect(metrics.taskInterval.duration > 0)
    }

    @Test func `metrics count redirects and have a transaction for each`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            ClientCore.request("\(httpbin.url)/redirect/3").response(completionHandler: $0)
        }
        #expect(response.metrics?.redirectCount == 3)
        #expect(response.metrics?.transactionMetrics.map { $0.response?.statusCode } == [302, 302, 302, 200])
    }

    @Test func `downloads and uploads have metrics`() async throws {
        let httpbin = try await HTTPBin.shared()
        let download = await once {
            ClientCore.download("\(httpbin.url)/bytes/10").responseData(completionHandler: $0)
        }
        #expect(download.metrics?.transactionMetrics.first?.countOfResponseBodyBytesReceived == 10)
        #expect(download.timeline.totalDuration > 0)
        try download.temporaryURL.map(FileManager.default.removeItem(at:))
        let upload = await once {
            ClientCore.upload(Data(count: 10), to: "\(httpbin.url)/post").responseJSON(completionHandler: $0)
        }
        #expect(upload.metrics?.transactionMetrics.first?.countOfRequestBodyBytesSent == 10)
        #expect(upload.timeline.totalDuration > 0)
    }

    // MARK: Descriptions

    @Test func `the description of a request contains its status once there is one`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("")) }
        let request = ClientCore.request("\(server.url)/ip")
        await server.requests(atLeast: 1)
        #expect("\(request)" == "GET \(server.url)/ip")
        server.release()
        _ = await once { request.response(completionHandler: $0) }
        #expect("\(request)" == "GET \(server.url)/ip (200)")
    }

    @Test func `the debug description of a request is a curl command`() async throws {
        let httpbin = try await HTTPBin.shared()
        let request = ClientCore.request("\(httpbin.url)/get", parameters: ["foo": "bar"])
        let lines = request.debugDescription.components(separatedBy: " \\\n\t")
        #expect(lines.first == "$ curl -v")
        #expect(lines.last == "'\(httpbin.url)/get?foo=bar'")
        #expect(lines.contains { $0.hasPrefix("-H 'User-Agent: ") })
        #expect(lines.contains { $0.hasPrefix("-H 'Accept-Language: ") })
        let printed = Recorder<String>()
        var text = ""
        debugPrint(request, to: &text)
        printed.record(text)
        #expect(printed.values == [request.debugDescription + "\n"])
        _ = await request.response()
    }

    @Test func `the command contains credentials and body, and redacts secrets on request`() async throws {
        let httpbin = try await HTTPBin.shared()
        let request = ClientCore.request(
            "\(httpbin.url)/post",
            method: .post,
            parameters: ["it's": "$HOME"],
            encoding: JSONEncoding.default
        )
        .authenticate(user: "user", password: "pass!word")
        #expect(request.debugDescription.contains("-X POST"))
        #expect(request.debugDescription.contains("-u 'user:pass!word'"))
        #expect(request.debugDescription.contains(#"'{"it'\''s":"$HOME"}'"#))
        #expect(!request.cURLDescription(redactingSecrets: true).contains("pass!word"))
        _ = await request.response()
    }

    @Test func `a request that could not be created has an empty description`() async throws {
        let request = ClientCore.request("")
        #expect("\(request)" == "")
        #expect(request.debugDescription == "$ curl command could not be created")
        _ = await request.response()
    }

    @Test func `the debug description of a response contains all its parts`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response = await once {
            ClientCore.request("\(httpbin.url)/get").responseString(completionHandler: $0)
        }
        var text = ""
        debugPrint(response, to: &text)
        let names = ["[Request]: GET ", "[Request Body]: ", "[Response]: 200", "[Response Body]: "]
        for name in names + ["[Result]: SUCCESS", "[Timeline]: Timeline: {"] {
            #expect(text.contains("\n\(name)") || text.hasPrefix(name))
        }
        #expect("\(response)".hasPrefix("SUCCESS: {"))
    }
}

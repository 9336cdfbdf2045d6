import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

private struct Page: Decodable, Equatable, Sendable {
    let url: String
}

@Suite(.timeLimit(.minutes(5))) struct ResponseHandlingTests {
    // MARK: The five handlers

    @Test func `response returns the response without serialization`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response: DefaultDataResponse = await once { done in
            ClientCore.request("\(httpbin.url)/get").response { response in done(response) }
        }
        #expect(response.request?.url?.absoluteString == "\(httpbin.url)/get")
        #expect(response.response?.statusCode == 200)
        #expect(response.error == nil)
        let text = try String(data: #require(response.data), encoding: .utf8)
        #expect(text?.contains("\"\(httpbin.url)/get\"") == true)
        #expect(response.timeline.totalDuration > 0)
        #expect(response.metrics?.transactionMetrics.count == 1)
    }

    @Test func `responseData returns the bytes`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response: DataResponse<Data> = await once { done in
            ClientCore.request("\(httpbin.url)/bytes/1000?seed=7").responseData { done($0) }
        }
        #expect(response.result.isSuccess)
        #expect(response.result.value?.count == 1000)
        #expect(response.data == response.result.value)
    }

    @Test func `responseString returns the text`() async throws {
        let httpbin = try await HTTPBin.shared()
        let response: DataResponse<String> = await once { done in
            ClientCore.request("\(httpbin.url)/get").responseString { done($0) }
        }
        #expect(response.result.isSuccess)
        #expect(response.result.value?.contains("\"\(httpbin.url)/get\"") == true)
    }

    @Test func `responseJSON returns dictionaries and arrays`() async throws {
        let httpbin = try await HTTPBin.shared()
        let url: String? = await once { done in
            ClientCore.request("\(httpbin.url)/get").responseJSON { response in
                done((response.result.value as? [String: Any])?["url"] as? String)
            }
        }
        #expect(url == "\(httpbin.url)/get")
    }

    @Test func `responsePropertyList returns dictionaries and arrays`() async throws {
        let nginx = try await Nginx.shared()
        for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
            let data = try PropertyListSerialization.data(
                fromPropertyList: ["name": "tea", "list": [1, 2]],
                format: format,
                options: 0
            )
            let name = "list-\(format.rawValue).plist"
            try data.write(to: nginx.root.appendingPathComponent(name))
            let list: [String: Any]? = await once { done in
                ClientCore.request("\(nginx.url)/\(name)").responsePropertyList { response in
                    done(response.result.value as? [String: Any])
                }
            }
            #expect(list?["name"] as? String == "tea")
            #expect(list?["list"] as? [Int] == [1, 2])
        }
    }

    @Test func `responsePropertyList returns the archive of a keyed archiver`() async throws {
        let nginx = try await Nginx.shared()
        let archive = try NSKeyedArchiver.archivedData(
            withRootObject: ["tea"] as NSArray,
            requiringSecureCoding: true
        )
        try archive.write(to: nginx.root.appendingPathComponent("archive.plist"))
        let response = await once { done in
            ClientCore.request("\(nginx.url)/archive.plist").responsePropertyList(completionHandler: done)
        }
        let list = object(response.value)
        #expect(list["$archiver"] as? String == "NSKeyedArchiver")
        #expect((list["$objects"] as? [Any])?.contains { $0 as? String == "tea" } == true)
        let names = try NSKeyedUnarchiver.unarchivedObject(
            ofClasses: [NSArray.self, NSString.self],
            from: response.data ?? Data()
        )
        #expect(names as? [String] == ["tea"])
    }

    @Test func `responseDecodable returns a decoded value`() async throws {
        let httpbin = try await HTTPBin.shared()
        let named: Page? = await once { done in
            ClientCore.request("\(httpbin.url)/get").responseDecodable(of: Page.self) { done($0.value) }
        }
        #expect(named == Page(url: "\(httpbin.url)/get"))
        let inferred: Page? = await once { done in
            ClientCore.request("\(httpbin.url)/get").responseDecodable {
                (response: DataResponse<Page>) in
                done(response.result.value)
            }
        }
        #expect(inferred == Page(url: "\(httpbin.url)/get"))
    }

    // MARK: Serialization errors

    @Test func `an invalid body is a serialization error with the response`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 200, body: [0xff]) }
        let errors = Recorder<AFError?>()
        let request = ClientCore.request(server.url)
            .responseJSON { errors.record($0.error as? AFError) }
            .responsePropertyList { errors.record($0.error as? AFError) }
            .responseDecodable(of: Page.self) { errors.record($0.error as? AFError) }
            .responseString(encoding: .utf8) { errors.record($0.error as? AFError) }
        try await errors.wait { $0.count == 4 }
        let failures = errors.values.map { $0?.isResponseSerializationError }
        #expect(failures == [true, true, true, true])
        #expect(errors.values[3]?.failedStringEncoding == .utf8)
        #expect(request.response?.statusCode == 200)
    }

    @Test func `an empty body is data and text, but neither JSON nor a property list`() async throws {
        let server = try ScriptedServer()
        let request = ClientCore.request(server.url)
        #expect(await request.responseData().value == Data())
        #expect(await request.responseString().value?.isEmpty == true)
        for error in [await request.responseJSON().error, await request.responsePropertyList().error] {
            guard case .responseSerializationFailed(.inputDataNilOrZeroLength)? = error as? AFError else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    @Test(arguments: [204, 205])
    func `a status without content returns an empty value`(status: Int) async throws {
        let httpbin = try await HTTPBin.shared()
        let request = ClientCore.request("\(httpbin.url)/status/\(status)")
        #expect(await request.responseData().value == Data())
        #expect(await request.responseString().value?.isEmpty == true)
        #expect(await request.responseJSON().value is NSNull)
        #expect(await request.responsePropertyList().value is NSNull)
    }

    // MARK: Charsets

    @Test(arguments: [
        ("text/plain; charset=utf-8", [0xc3, 0xa9], "é"),
        ("text/plain; charset=\"UTF-16BE\"", [0, 0xe9], "é"),
        ("text/plain; charset=windows-1252", [0x80], "€"), ("text/plain", [0xe9], "é"),
        ("text/plain; charset=unheard-of", [0xe9], "é"),
    ])
    func `text uses the response's charset or ISO 8859-1`(
        type: String,
        body: [UInt8],
        text: String
    ) async throws {
        let server = try ScriptedServer { _ in
            .respond(status: 200, headers: [.init("Content-Type", type)], body: body)
        }
        #expect(try await ClientCore.request(server.url).string == text)
    }

    @Test func `an explicit encoding overrides the charset`() async throws {
        let server = try ScriptedServer { _ in
            .respond(
                status: 200,
                headers: [.init("Content-Type", "text/plain; charset=utf-8")],
                body: [0xe9]
            )
        }
        let response: DataResponse<String> = await once { done in
            ClientCore.request(server.url).responseString(encoding: .isoLatin1) { done($0) }
        }
        #expect(response.value == "é")
    }

    // MARK: Awaiting

    @Test func `every handler can be awaited`() async throws {
        let httpbin = try await HTTPBin.shared()
        let request = ClientCore.request("\(httpbin.url)/get")
        let response = await request.response()
        #expect(response.error == nil)
        #expect(await request.responseData().value == response.data)
        #expect(await request.responseString().value?.contains("\(httpbin.url)/get") == true)
        #expect((await request.responseJSON().value as? [String: Any])?.keys.contains("url") == true)
        #expect(await request.responseDecodable(of: Page.self).value == Page(url: "\(httpbin.url)/get"))
        #expect(try await request.data == response.data)
        #expect(try await request.decodable(of: Page.self) == Page(url: "\(httpbin.url)/get"))
        #expect(await request.responsePropertyList().error is AFError)
    }

    @Test func `cancelling the awaiting task cancels the request`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let task = Task { try await ClientCore.request(server.url).data }
        task.cancel()
        await #expect { try await task.value } throws: { ($0 as? URLError)?.code == .cancelled }
    }

    // MARK: Several handlers

    @Test func `handlers are called in order and once each`() async throws {
        let httpbin = try await HTTPBin.shared()
        let calls = Recorder<String>()
        let request = ClientCore.request("\(httpbin.url)/get")
            .responseString { calls.record("text \($0.result.isSuccess)") }
            .responseJSON { calls.record("JSON \($0.result.isSuccess)") }
            .response { calls.record("as it is \($0.error == nil)") }
            .responseData { calls.record("data \($0.result.isSuccess)") }
            .responsePropertyList { calls.record("list \($0.result.isSuccess)") }
            .responseDecodable(of: Page.self) { calls.record("value \($0.result.isSuccess)") }
        try await calls.wait { $0.count >= 6 }
        // If a handler were called twice, its second call would come before this handler.
        _ = await once { done in request.response(completionHandler: done) }
        #expect(
            calls.values == [
                "text true", "JSON true", "as it is true", "data true", "list false", "value true",
            ]
        )
    }

    @Test func `a handler added after the end is called`() async throws {
        let server = try ScriptedServer { _ in .respond("done") }
        let request = ClientCore.request(server.url)
        let first: String? = await once { done in request.responseString { done($0.value) } }
        let second: String? = await once { done in request.responseString { done($0.value) } }
        #expect([first, second] == ["done", "done"])
        #expect(server.requests.count == 1)
    }

    @Test func `a response is only available in its handlers`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("done")) }
        let order = Recorder<String?>()
        let request = ClientCore.request(server.url).responseString { order.record($0.value) }
        #expect(request.response == nil)
        order.record("the call returned")
        server.release()
        try await order.wait { $0.count == 2 }
        #expect(order.values == ["the call returned", "done"])
    }

    // MARK: Queues

    @Test func `a handler without a queue is called on the main queue`() async throws {
        let server = try ScriptedServer()
        let isMain: Bool = await once { done in
            ClientCore.request(server.url).responseData { _ in
                dispatchPrecondition(condition: .onQueue(.main))
                done(true)
            }
        }
        #expect(isMain)
    }

    @Test func `a handler is called on its queue`() async throws {
        let httpbin = try await HTTPBin.shared()
        let utilityQueue = DispatchQueue.global(qos: .utility)
        let own = DispatchQueue(label: "guide")
        let isSuccess: Bool = await once { done in
            ClientCore.request("\(httpbin.url)/get").responseJSON(queue: utilityQueue) { response in
                dispatchPrecondition(condition: .onQueue(utilityQueue))
                done(response.result.isSuccess)
            }
        }
        #expect(isSuccess)
        let request = ClientCore.request("\(httpbin.url)/get")
        let handlers: [(@escaping @Sendable () -> Void) -> Void] = [
            { done in request.response(queue: own) { _ in Self.check(own, done) } },
            { done in request.responseData(queue: own) { _ in Self.check(own, done) } },
            { done in request.responseString(queue: own) { _ in Self.check(own, done) } },
            { done in request.responseJSON(queue: own) { _ in Self.check(own, done) } },
            { done in request.responsePropertyList(queue: own) { _ in Self.check(own, done) } },
            { done in
                request.responseDecodable(of: Page.self, queue: own) { _ in Self.check(own, done) }
            },
        ]
        for handler in handlers {
            await once { (done: @escaping @Sendable (()) -> Void) in handler { done(()) } }
        }
    }

    private static func check(_ queue: DispatchQueue, _ done: () -> Void) {
        dispatchPrecondition(condition: .onQueue(queue))
        done()
    }

    @Test func `a session can have a queue for its handlers`() async throws {
        let server = try ScriptedServer { .respond($0.target) }
        let queue = DispatchQueue(label: "guide")
        let sessionManager = SessionManager()
        sessionManager.completionQueue = queue
        let text: String? = await once { done in
            sessionManager.request("\(server.url)/a").responseString { response in
                dispatchPrecondition(condition: .onQueue(queue))
                done(response.value)
            }
        }
        #expect(text == "/a")
        let other: String? = await once { done in
            sessionManager.request("\(server.url)/b").responseString(queue: .main) { response in
                dispatchPrecondition(condition: .onQueue(.main))
                done(response.value)
            }
        }
        #expect(other == "/b")
    }
}

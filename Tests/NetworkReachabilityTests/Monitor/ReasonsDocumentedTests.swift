internal import CNetwatchTestSupport
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Runs the commands of the article `WhyNotReachable.md`, and compares their output and the status with the article.
@Suite struct ReasonsDocumentedTests {
    private static let article = Result { try ReasonsArticle() }
    private static let reproductions = (try? article.get().reproductions) ?? []

    @Test func `every reason has a section in the article`() throws {
        let sections = Set(try Self.article.get().headings)
        let reasons = try ReasonsArticle.declaredReasons()
        #expect(reasons.contains(PathStatus.Reason.noRoute.rawValue))
        #expect(reasons.subtracting(sections) == [])
        // Each section describes one reason, except for the section that sets up the network.
        #expect(sections.subtracting(reasons).count == 1)
    }

    @Test(
        .needsNetworkNamespaces,
        arguments: reproductions
    )
    func `the output of the commands and the library matches the article`(
        _ shown: ReasonsArticle.Reproduction
    )
        async throws
    {
        let network = try Self.article.get().network
        let namespace = try NetworkNamespace()
        for change in network.changes { try namespace.shell(change) }
        if shown.reason == .noNetlink { return try await expectWithoutNetlink(shown, in: namespace) }
        let monitor = Self.monitor(of: namespace)
        let statuses = Recorder<PathStatus>()
        let host = try #require(NetworkHost(shown.host))
        let watch = monitor.watch(.host(host), options: Self.options(for: shown.reason)) {
            statuses.record($0)
        }
        if shown.heading != network.heading {
            try await statuses.wait { !$0.isEmpty }
            for change in shown.changes { try namespace.shell(change) }
        }
        try await statuses.waitForLast { "\($0)" == shown.status }
        for question in shown.questions {
            expect(namespace.run { Self.answer(to: question) }, of: question)
        }
        watch.cancel()
    }

    @Test func `during the first lookup only getters return the reason resolving`() async throws {
        let isAnswered = Gate()
        let resolver = NameResolver { _ in
            isAnswered.wait()
            return .failure(.init(code: -2))
        }
        let monitor = PathMonitor(configuration: .init(), resolver: resolver)
        let statuses = Recorder<PathStatus>()
        let host = try #require(NetworkHost("nosuch.invalid"))
        let watch = monitor.watch(.host(host)) { statuses.record($0) }
        #expect(watch.status.verdict == .unknown(.resolving))
        isAnswered.open()
        try await statuses.wait { !$0.isEmpty }
        #expect(statuses.values.allSatisfy { $0.reason != .resolving })
    }

    private static func options(for reason: PathStatus.Reason) -> PathOptions {
        var options = PathOptions()
        if reason == .noInterface { options.interface = "wg0" }
        return options
    }

    /// Returns a monitor of the namespace. Its resolver fails for every name.
    private static func monitor(of namespace: NetworkNamespace) -> PathMonitor {
        PathMonitor(
            configuration: .init(in: namespace),
            resolver: NameResolver { _ in .failure(.init(code: -2)) }
        )
    }

    /// Runs the queries and starts the monitor on a thread that may not open netlink sockets.
    private func expectWithoutNetlink(
        _ shown: ReasonsArticle.Reproduction,
        in namespace: NetworkNamespace
    ) async throws {
        for change in shown.changes { try namespace.shell(change) }
        let host = try #require(NetworkHost(shown.host))
        let outcomes = Recorder<(answers: [String], status: PathStatus)>()
        try startDetachedThread(named: "sandbox") {
            guard netwatch_deny_netlink() == 0 else { return }
            let watch = Self.monitor(of: namespace).watch(.host(host)) { _ in }
            outcomes.record((shown.questions.map(Self.answer), watch.status))
        }
        try await outcomes.wait { !$0.isEmpty }
        #expect("\(outcomes.values[0].status)" == shown.status)
        for (answer, question) in zip(outcomes.values[0].answers, shown.questions) {
            expect(answer, of: question)
        }
    }

    private static func answer(to question: ReasonsArticle.Command) -> String {
        do {
            // The options limit the time that `getent` waits for a name server that cannot be reached.
            return try shell("export RES_OPTIONS='timeout:1 attempts:1'\n\(question.text)")
        } catch {
            return (error as? CommandFailure)?.output ?? "\(error)"
        }
    }

    /// Compares the output of a command with the article, word by word, because the whitespace is not significant.
    private func expect(_ answer: String, of question: ReasonsArticle.Command) {
        let words = answer.split(whereSeparator: \.isWhitespace)
        let expected = question.output.flatMap { $0.split(whereSeparator: \.isWhitespace) }
        #expect(words == expected, "\(question.text)")
    }
}

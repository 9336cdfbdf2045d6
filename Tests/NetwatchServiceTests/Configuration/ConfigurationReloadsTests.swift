internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

@Suite(.timeLimit(.minutes(5))) struct ConfigurationReloadsTests {
    @Test func `a reload begins when the reload before it has ended`() async {
        let reloads = ConfigurationReloads()
        let steps = Recorder<String>()
        await reloads.use {
            steps.record("begin")
            await Task.yield()
            steps.record("end")
            return .applied(hosts: 0, restartKeys: [])
        }
        async let first = reloads.reload()
        async let second = reloads.reload()
        let outcomes = await [first, second]
        #expect(outcomes.allSatisfy { $0 == .applied(hosts: 0, restartKeys: []) })
        #expect(steps.values == ["begin", "end", "begin", "end"])
    }

    @Test func `the last result is kept`() async {
        let reloads = ConfigurationReloads()
        #expect(await reloads.latest?.outcome == nil)
        await reloads.use { .refused(["a fault"]) }
        _ = await reloads.reload()
        #expect(await reloads.latest?.outcome == .refused(["a fault"]))
    }
}

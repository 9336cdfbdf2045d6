internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

@Suite(.timeLimit(.minutes(3))) struct ProbeSlotsTests {
    private let slots = ProbeSlots(count: 1)

    /// Yields until `count` tasks wait for a slot.
    private func waitForWaiters(_ count: Int, in slots: ProbeSlots? = nil) async {
        while (slots ?? self.slots).waitingCount != count { await Task.yield() }
    }

    @Test func `acquiring waits until a slot is released`() async {
        #expect(await slots.acquire())
        let second = Task { await slots.acquire() }
        await waitForWaiters(1)
        slots.release()
        #expect(await second.value)
        #expect(slots.waitingCount == 0)
    }

    @Test func `a cancelled waiter gets no slot, and the next waiter gets the released slot`() async {
        #expect(await slots.acquire())
        let second = Task { await slots.acquire() }
        await waitForWaiters(1)
        let third = Task { await slots.acquire() }
        await waitForWaiters(2)
        second.cancel()
        #expect(await second.value == false)
        slots.release()
        #expect(await third.value)
        slots.release()
        #expect(await slots.acquire(), "no slot was lost")
    }

    @Test func `a task cancelled before it acquires gets no slot`() async {
        let task = Task {
            await waitForCancellation()
            return await slots.acquire()
        }
        task.cancel()
        #expect(await task.value == false)
        #expect(await slots.acquire())
    }

    @Test func `any order of acquiring, cancelling and releasing leaves all slots free`() async {
        let slots = ProbeSlots(count: 3)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<300 {
                group.addTask {
                    let task = Task {
                        guard await slots.acquire() else { return }
                        await Task.yield()
                        slots.release()
                    }
                    if number.isMultiple(of: 3) { task.cancel() }
                    await task.value
                }
            }
        }
        for _ in 0..<3 { #expect(await slots.acquire()) }
        let fourth = Task { await slots.acquire() }
        await waitForWaiters(1, in: slots)
        fourth.cancel()
        #expect(await fourth.value == false)
    }

    @Test func `validators share the slots`() async throws {
        let loop = try ProbeLoop().get()
        let target = PathTarget.host(try #require(NetworkHost("127.0.0.1")))
        let status = PathMonitor.shared.watch(target) { _ in }.status
        let probes = [ManualProbe(), ManualProbe()]
        let cores = probes.map {
            ValidationCore(loop: loop, target: target, probe: $0, interval: nil, slots: slots) { _ in }
        }
        cores[0].take(status)
        try await probes[0].events.wait { $0.count == 1 }
        cores[1].take(status)
        await waitForWaiters(1)
        #expect(probes[1].starts.isEmpty)
        probes[0].answer(.valid)
        try await probes[1].events.wait { $0.count == 1 }
        probes[1].answer(.valid)
        for core in cores { core.stop() }
    }
}

internal import Testing

@testable internal import OfflineQueue

@Suite struct WeightedQueueTests {
    /// Takes keys that join again at once. Returns how often each was taken.
    private func turns(_ count: Int, _ weights: [String: Int]) -> [String: Int] {
        var queue = WeightedQueue<String>()
        for (key, weight) in weights { queue.append(key, weight: weight) }
        var turns: [String: Int] = [:]
        for _ in 0..<count {
            let key = queue.removeFirst()!
            turns[key, default: 0] += 1
            queue.append(key, weight: weights[key]!)
        }
        return turns
    }

    @Test func `keys of equal weight are in the order in which they joined`() {
        var queue = WeightedQueue<Int>()
        for key in [3, 1, 2] { queue.append(key) }
        queue.append(3)
        #expect(queue.contains(3) && !queue.contains(4))
        queue.remove(1)
        #expect(queue.removeFirst() == 3)
        queue.append(4)
        queue.append(1)
        #expect([queue.removeFirst(), queue.removeFirst(), queue.removeFirst()] == [2, 4, 1])
        #expect(queue.removeFirst() == nil && queue.isEmpty)
    }

    @Test func `a new weight moves a waiting key to where it would be if it had joined with this weight`() {
        var queue = WeightedQueue<String>()
        for key in ["a", "b"] { queue.append(key) }
        queue.append("b", weight: 3)
        #expect(queue.removeFirst() == "b")
        queue.append("c", weight: 2)
        queue.append("c", weight: 1)
        #expect([queue.removeFirst(), queue.removeFirst()] == ["a", "c"])
        #expect(queue.isEmpty)
    }

    @Test func `a new key waits behind the keys that were there before, however many new ones arrive`() {
        var queue = WeightedQueue<Int>()
        queue.append(0)
        for key in 1...1000 {
            queue.append(key)
            if queue.removeFirst() == 0 { return }
        }
        Issue.record("the first key was never taken")
    }

    @Test(arguments: [
        ["a": 3, "b": 1], ["a": 1, "b": 1, "c": 1], ["a": 100, "b": 7, "c": 1], ["a": 5, "b": 5],
    ])
    func `turns are in proportion to the weights`(weights: [String: Int]) {
        let sum = weights.values.reduce(0, +)
        let turns = turns(sum * 100, weights)
        for (key, weight) in weights {
            #expect(abs(turns[key]! - weight * 100) <= weights.count, "\(turns)")
        }
    }

    @Test func `a key that is absent while another one has a turn keeps its share`() {
        var queue = WeightedQueue<String>()
        queue.append("heavy", weight: 3)
        queue.append("light")
        #expect([queue.removeFirst(), queue.removeFirst()] == ["heavy", "light"])
        queue.append("light")
        var turns: [String] = []
        for _ in 0..<5 {
            queue.append("heavy", weight: 3)
            turns.append(queue.removeFirst()!)
        }
        #expect(turns == ["heavy", "heavy", "heavy", "heavy", "light"], "two of them are of the first round")
    }

    @Test func `a key that was absent for long gets no more than one round of turns for it`() {
        var queue = WeightedQueue<String>()
        queue.append("light")
        for _ in 0..<1000 { queue.append(queue.removeFirst()!) }
        queue.append("heavy", weight: 10)
        var heavy = 0
        for _ in 0..<22 {
            let key = queue.removeFirst()!
            if key == "heavy" { heavy += 1 }
            queue.append(key, weight: key == "heavy" ? 10 : 1)
        }
        #expect((20...21).contains(heavy))
    }
}

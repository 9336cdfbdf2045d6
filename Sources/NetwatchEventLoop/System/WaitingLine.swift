/// A FIFO queue with amortized constant-time operations.
package struct WaitingLine<Element> {
    private var arrived: [Element] = []
    /// The next element to remove is the last one.
    private var leaving: [Element] = []

    package init() {}

    package var isEmpty: Bool { arrived.isEmpty && leaving.isEmpty }

    /// The next element to be removed.
    package var first: Element? { leaving.last ?? arrived.first }

    package mutating func append(_ element: Element) {
        arrived.append(element)
    }

    package mutating func popFirst() -> Element? {
        if leaving.isEmpty {
            leaving = arrived.reversed()
            arrived = []
        }
        return leaving.popLast()
    }

    /// Removes and returns all elements.
    package mutating func removeAll() -> [Element] {
        defer { self = WaitingLine() }
        return leaving.reversed() + arrived
    }

    /// Removes the elements for which the closure returns `false`.
    package mutating func keep(where isKept: (Element) -> Bool) {
        arrived = arrived.filter(isKept)
        leaving = leaving.filter(isKept)
    }
}

extension WaitingLine: Sendable where Element: Sendable {}

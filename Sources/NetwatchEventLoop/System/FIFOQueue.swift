/// A FIFO queue with amortized constant-time operations.
package struct FIFOQueue<Element> {
    private var incoming: [Element] = []
    /// The elements to remove next, in reverse order: the last element is removed first.
    private var outgoing: [Element] = []

    package init() {}

    package var isEmpty: Bool { incoming.isEmpty && outgoing.isEmpty }

    /// The next element to be removed.
    package var first: Element? { outgoing.last ?? incoming.first }

    package mutating func append(_ element: Element) {
        incoming.append(element)
    }

    package mutating func popFirst() -> Element? {
        if outgoing.isEmpty {
            outgoing = incoming.reversed()
            incoming = []
        }
        return outgoing.popLast()
    }

    /// Removes and returns all elements.
    package mutating func removeAll() -> [Element] {
        defer { self = FIFOQueue() }
        return outgoing.reversed() + incoming
    }

    /// Removes the elements for which the closure returns `false`.
    package mutating func keep(where isKept: (Element) -> Bool) {
        incoming = incoming.filter(isKept)
        outgoing = outgoing.filter(isKept)
    }
}

extension FIFOQueue: Sendable where Element: Sendable {}

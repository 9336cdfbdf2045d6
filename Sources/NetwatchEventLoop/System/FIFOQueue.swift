/// A FIFO queue with amortized constant-time operations.
///
/// Its functions are inlinable, because other modules would otherwise run them as generic code.
package struct FIFOQueue<Element> {
    @usableFromInline var incoming: [Element] = []
    /// The elements to remove next, in reverse order: the last element is removed first.
    @usableFromInline var outgoing: [Element] = []

    @inlinable package init() {}

    @inlinable package var isEmpty: Bool { incoming.isEmpty && outgoing.isEmpty }

    /// The next element to be removed.
    @inlinable package var first: Element? { outgoing.last ?? incoming.first }

    @inlinable package mutating func append(_ element: Element) {
        incoming.append(element)
    }

    @inlinable package mutating func popFirst() -> Element? {
        if outgoing.isEmpty {
            outgoing = incoming.reversed()
            incoming = []
        }
        return outgoing.popLast()
    }

    /// Removes and returns all elements.
    @inlinable package mutating func removeAll() -> [Element] {
        defer { self = FIFOQueue() }
        return outgoing.reversed() + incoming
    }

    /// Removes the elements for which the closure returns `false`.
    @inlinable package mutating func keep(where isKept: (Element) -> Bool) {
        incoming = incoming.filter(isKept)
        outgoing = outgoing.filter(isKept)
    }
}

extension FIFOQueue: Sendable where Element: Sendable {}

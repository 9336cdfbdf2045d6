/// Reads the records of B-trees from the pages of a damaged database, and remembers which pages it has read. All methods
/// block.
struct TreeReader {
    /// SQLite's own limit. No deeper tree fits into a file.
    private static let maximumDepth = 20
    /// No row of the tables that are salvaged is larger: bodies in the database have at most 64 KiB.
    private static let maximumRecordBytes = 16 << 20

    private let pages: DatabasePages
    private var isRead: [Bool]
    /// The number of overflow pages that can still be read.
    private let overflow: OverflowBudget

    init(_ pages: DatabasePages) {
        self.pages = pages
        isRead = [Bool](repeating: false, count: pages.count + 1)
        overflow = OverflowBudget(pages: pages.count)
    }

    /// Reads the records of a tree, and skips what is damaged.
    ///
    /// The rows come in the order of their numbers. Rows whose number does not fit to the interior pages come last,
    /// because either the row or the interior page is damaged. So they do not take the number of another row.
    ///
    /// - Parameters:
    ///   - root: The number of the tree's root page.
    ///   - isTable: Whether the tree is a table with row numbers. A table without row numbers is stored like an index.
    ///   - body: Is called with the number of the row (0 in an index) and its values.
    /// - Returns: Whether the whole tree was read.
    mutating func read(
        _ root: Int,
        isTable: Bool,
        _ body: (Int64, Record) throws -> Void
    ) rethrows -> Bool {
        var doubtful: [(page: Int, bounds: RowBounds)] = []
        let isWhole = try read(root, isTable, within: .none, depth: 0, &doubtful, body)
        for (number, bounds) in doubtful {
            guard let page = page(number) else { continue }
            for (row, record) in records(of: page).rows where !bounds.contains(row) { try body(row, record) }
        }
        return isWhole && doubtful.isEmpty
    }

    /// Reads the records of a page that belongs to no tree that was read; `nil` if it was read, or if it is not a leaf
    /// page of a table with at least one record.
    ///
    /// The content of an overflow page cannot be taken for such a page. An overflow page begins with the number of
    /// another page in four bytes, and the number of pages is limited so that the first of these bytes is not 13, which
    /// is the type of a leaf page. Therefore a body cannot contain rows that salvage takes for requests of other users.
    func separateLeaf(_ number: Int) -> [(row: Int64, record: Record)]? {
        guard !isRead[number], let page = page(number), page.kind == .leafTable else { return nil }
        let rows = records(of: page).rows
        return rows.isEmpty ? nil : rows
    }

    private func page(_ number: Int) -> TreePage? {
        pages.page(number).flatMap { TreePage($0, number: number) }
    }

    private mutating func read(
        _ number: Int,
        _ isTable: Bool,
        within bounds: RowBounds,
        depth: Int,
        _ doubtful: inout [(page: Int, bounds: RowBounds)],
        _ body: (Int64, Record) throws -> Void
    ) rethrows -> Bool {
        guard depth < Self.maximumDepth, number > 0, number <= pages.count, !isRead[number],
            let page = page(number), page.kind.isTable == isTable
        else { return false }
        isRead[number] = true
        let found = records(of: page)
        for (row, record) in found.rows where bounds.contains(row) { try body(row, record) }
        if !found.rows.allSatisfy({ bounds.contains($0.row) }) { doubtful.append((number, bounds)) }
        var isWhole = found.isWhole
        var low = bounds.low
        for child in page.children {
            let inner = RowBounds(low: low, high: child.lastRow ?? bounds.high)
            let isChildWhole = try read(child.page, isTable, within: inner, depth: depth + 1, &doubtful, body)
            isWhole = isWhole && isChildWhole
            low = child.lastRow ?? low
        }
        return isWhole
    }

    // MARK: One page

    private func records(of page: TreePage) -> (rows: [(row: Int64, record: Record)], isWhole: Bool) {
        let cells = page.cells
        let found = cells.compactMap { cell -> (row: Int64, record: Record)? in
            guard let cell, let bytes = content(of: cell), let record = Record(bytes) else { return nil }
            return (cell.row ?? 0, record)
        }
        let rows = page.kind == .leafTable ? Self.ascending(found) : found
        return (rows, rows.count == cells.count)
    }

    /// Removes the rows whose damaged number is not in the order of the others.
    private static func ascending(
        _ rows: [(row: Int64, record: Record)]
    ) -> [(row: Int64, record: Record)] {
        var kept: [(row: Int64, record: Record)] = []
        for (index, row) in rows.enumerated() {
            let last = kept.last?.row ?? .min
            guard row.row > last else { continue }
            // A number that is too large must not remove the rows behind it.
            if index + 1 < rows.count, last < rows[index + 1].row, rows[index + 1].row <= row.row { continue }
            kept.append(row)
        }
        return kept
    }

    /// Returns the bytes of a record, including its overflow pages; `nil` if one of these cannot be read.
    private func content(of cell: TreePage.Cell) -> [UInt8]? {
        guard cell.size <= Self.maximumRecordBytes else { return nil }
        var (bytes, next) = ([UInt8](cell.local), cell.overflow)
        bytes.reserveCapacity(cell.size)
        while bytes.count < cell.size {
            guard overflow.takePage(), let page = pages.page(next) else { return nil }
            next = Int(page.number(at: 0))
            bytes += page[4...].prefix(cell.size - bytes.count)
        }
        return next == 0 ? bytes : nil
    }
}

/// Limits how many overflow pages are read. An undamaged one belongs to one record, which is read at most four times.
/// Damaged ones may follow each other in a circle.
private final class OverflowBudget {
    private var left: Int

    init(pages: Int) {
        left = 4 * pages
    }

    func takePage() -> Bool {
        left -= 1
        return left >= 0
    }
}

/// The numbers that the rows of a page must have, according to the interior pages above it.
private struct RowBounds {
    /// The rows have larger numbers; `nil` for no bound.
    var low: Int64?
    /// The largest permitted number; `nil` for no bound.
    var high: Int64?

    static let none = RowBounds()

    func contains(_ row: Int64) -> Bool {
        low.map { $0 < row } ?? true && high.map { row <= $0 } ?? true
    }
}

// MARK: - Free pages

extension DatabasePages {
    /// Returns the pages that contain nothing, according to the list of free pages. A free page may still contain the
    /// rows that it had before, because the store does not overwrite it.
    ///
    /// - Returns: `nil` if the list cannot be read, or does not have the length in the file's header.
    func freePages() -> Set<Int>? {
        guard let freeList else { return nil }
        var (free, next) = (Set<Int>(), freeList.first)
        while next != 0 {
            guard free.insert(next).inserted, let trunk = page(next) else { return nil }
            let entries = Int(trunk.number(at: 4))
            guard entries <= pageBytes / 4 - 2 else { return nil }
            for entry in 0..<entries {
                let number = Int(trunk.number(at: 8 + 4 * entry))
                guard number > 1, number <= count, free.insert(number).inserted else { return nil }
            }
            next = Int(trunk.number(at: 0))
        }
        return free.count == freeList.count ? free : nil
    }
}

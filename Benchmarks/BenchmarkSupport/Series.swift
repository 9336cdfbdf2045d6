/// One measurement and what it is compared with, run in turn, several times.
package struct Series: Sendable {
    /// What selects it on the command line.
    package let name: String
    package let title: String
    /// Arguments of this program.
    package let ours: String
    /// What is run beside it, in this order; empty where there is nothing to compare with.
    package let others: [Other]
    package let rounds: Int
    package let figures: [Figure]
    /// Shell commands that are run once, before the first round.
    package let preparations: [String]
    /// What the commands find in their environment, as for `env(1)`.
    package let environment: [String]

    /// - Parameter name: Default: the name of our measurement.
    package init(
        _ name: String? = nil,
        title: String,
        ours: String,
        others: [Other] = [],
        rounds: Int,
        figures: [Figure],
        preparations: [String] = [],
        environment: [String] = []
    ) {
        self.name = name ?? String(ours.prefix { $0 != " " })
        self.title = title
        self.ours = ours
        self.others = others
        self.rounds = rounds
        self.figures = figures
        self.preparations = preparations
        self.environment = environment
    }

    /// Whatever prints figures of ours.
    package struct Other: Sendable {
        enum Command {
            /// A program in the directory of the floors, with its arguments.
            case floor(String)
            /// This program's measurement, with its arguments.
            case measurement(String)
            /// Any other, which may be missing.
            case program(String)

            var mayBeMissing: Bool {
                if case .program = self { true } else { false }
            }
        }

        let name: String
        let command: Command

        package static func floor(_ arguments: String, name: String = "floor") -> Other {
            Other(name: name, command: .floor(arguments))
        }

        /// Another program, measured by this one. `FLOORS/` in its arguments is where the floors are.
        package static func measured(_ name: String, by arguments: String) -> Other {
            Other(name: name, command: .measurement(arguments))
        }

        package static func program(_ name: String, _ command: String) -> Other {
            Other(name: name, command: .program(command))
        }
    }
}

/// One of the figures that a measurement prints.
package struct Figure: Sendable {
    package let name: String
    package let unit: String
    package let aims: [Aim]

    package init(_ name: String, _ unit: String, aims: [Aim] = []) {
        self.name = name
        self.unit = unit
        self.aims = aims
    }

    /// What ours is to be: at most, or at least, so many times another's, plus so many units.
    package struct Aim: Sendable {
        let isAtMost: Bool
        let factor: Double
        let plus: Double
        /// Whose figure the factor is of; `nil`: of whatever is first beside ours.
        let other: String?

        package static func atMost(_ factor: Double = 0, of other: String? = nil, plus: Double = 0) -> Aim {
            Aim(isAtMost: true, factor: factor, plus: plus, other: other)
        }

        package static func atLeast(_ factor: Double, of other: String? = nil) -> Aim {
            Aim(isAtMost: false, factor: factor, plus: 0, other: other)
        }

        func text(_ other: String?) -> String {
            let product = factor > 0 ? "\(factor) × \(other ?? "")" : nil
            let parts = [product, plus > 0 || factor == 0 ? "\(plus)" : nil]
            return (isAtMost ? "≤ " : "≥ ") + parts.compactMap(\.self).joined(separator: " + ")
        }

        /// Whether it is met, round by round in the middle.
        func isMet(ours: [Double], others: [Double]) -> Bool {
            let bounds = others.isEmpty ? ours.map { _ in plus } : others.map { factor * $0 + plus }
            let difference = median(zip(ours, bounds).map { $0 - $1 })
            return isAtMost ? difference <= 0 : difference >= 0
        }
    }
}

/// A measurement of netwatch and the programs that it is compared with. They run alternately for several rounds.
package struct Series: Sendable {
    /// The name that selects the series on the command line. Several series may have the same name.
    package let name: String
    package let title: String
    /// The name and the arguments of netwatch's measurement.
    package let ours: String
    /// The compared programs in the order in which they run. May be empty.
    package let others: [Other]
    package let rounds: Int
    /// The figures that the table shows.
    package let figures: [Figure]
    /// Shell commands that run once, before the first round.
    package let preparations: [String]
    /// Environment variables for all measurements of the series, in the format of `env(1)`.
    package let environment: [String]

    /// - Parameter name: The name of the series. Default: the name of netwatch's measurement.
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

    /// A compared program, which prints the same figures as netwatch's measurement.
    package struct Other: Sendable {
        enum Command {
            /// A program in the directory of the floors, with its arguments.
            case floor(String)
            /// A ``Measurement`` of this benchmark, with its arguments.
            case measurement(String)
            /// Any other command. The program may be missing.
            case program(String)

            var mayBeMissing: Bool {
                if case .program = self { true } else { false }
            }
        }

        let name: String
        let command: Command

        /// A minimal C program in the directory of the floors.
        package static func floor(_ arguments: String, name: String = "floor") -> Other {
            Other(name: name, command: .floor(arguments))
        }

        /// A program or a case that a ``Measurement`` of this benchmark measures.
        ///
        /// - Parameter arguments: The name and the arguments of the measurement. A leading `FLOORS/` of an argument is
        ///   replaced by the directory of the floors.
        package static func measured(_ name: String, by arguments: String) -> Other {
            Other(name: name, command: .measurement(arguments))
        }

        /// A program that prints its figures itself and may be missing.
        package static func program(_ name: String, _ command: String) -> Other {
            Other(name: name, command: .program(command))
        }
    }
}

/// A figure that a measurement prints, as a row of the table shows it.
package struct Figure: Sendable {
    package let name: String
    package let unit: String
    /// The targets for netwatch's result.
    package let aims: [Aim]

    package init(_ name: String, _ unit: String, aims: [Aim] = []) {
        self.name = name
        self.unit = unit
        self.aims = aims
    }

    /// A target for netwatch's result: at most, or at least, `factor` times the result of a compared program, plus
    /// `plus`.
    package struct Aim: Sendable {
        let isAtMost: Bool
        let factor: Double
        /// A constant in the unit of the figure.
        let plus: Double
        /// The name of the compared program. If it is `nil`, the first compared program is meant.
        let other: String?

        /// A target of at most `factor` times the result of `other`, plus `plus`. Without `factor`, the target is the
        /// constant `plus`.
        package static func atMost(_ factor: Double = 0, of other: String? = nil, plus: Double = 0) -> Aim {
            Aim(isAtMost: true, factor: factor, plus: plus, other: other)
        }

        /// A target of at least `factor` times the result of `other`.
        package static func atLeast(_ factor: Double, of other: String? = nil) -> Aim {
            Aim(isAtMost: false, factor: factor, plus: 0, other: other)
        }

        func text(_ other: String?) -> String {
            let product = factor > 0 ? "\(factor) × \(other ?? "")" : nil
            let parts = [product, plus > 0 || factor == 0 ? "\(plus)" : nil]
            return (isAtMost ? "≤ " : "≥ ") + parts.compactMap(\.self).joined(separator: " + ")
        }

        /// Returns whether the target is met in the median of all rounds.
        func isMet(ours: [Double], others: [Double]) -> Bool {
            let bounds = others.isEmpty ? ours.map { _ in plus } : others.map { factor * $0 + plus }
            let difference = median(zip(ours, bounds).map { $0 - $1 })
            return isAtMost ? difference <= 0 : difference >= 0
        }
    }
}

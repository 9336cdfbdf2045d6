/// The result of a check of a store's structure that ends after a time limit.
package enum QuickCheck: Hashable, Sendable {
    /// The whole structure was checked.
    case noDamage
    /// The first damage, for users.
    case damaged(String)
    /// The limit was reached before the end, and no damage was found until then.
    case unfinished
}

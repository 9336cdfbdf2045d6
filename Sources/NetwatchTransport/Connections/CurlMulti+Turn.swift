extension CurlMulti {
    /// The result of one call of libcurl.
    struct Turn {
        /// The transfers that have ended.
        var ended: [TransferID] = []
        /// The transfers that the engine must add again with another connection. If a transfer has a
        /// ``Transfer/question``, the program must answer it first.
        var unconnected: [Transfer] = []
        /// The transfers that reached milestones in this turn.
        var milestones: [(id: TransferID, reached: Transfer.Milestones)] = []

        /// Removes everything, but keeps memory for the next turn.
        mutating func removeAll() {
            ended.removeAll(keepingCapacity: true)
            unconnected = []
            milestones.removeAll(keepingCapacity: true)
        }
    }
}

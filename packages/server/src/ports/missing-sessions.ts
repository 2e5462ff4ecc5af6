/** Sessions of which their store knows nothing any more, though there are calls in which they have a place. */
export interface Missing {
  /** Whether a session would be one of them. */
  readonly isOf: (sessionId: string) => boolean
  /** Another process began to make them up, and died: a session that is there may lack what its calls mean for it. */
  readonly wasBegun: boolean
}

/** What a process that starts makes up from the calls, before it serves [RES3]. Everything rejects with a `StoreError`. */
export interface MissingSessions {
  /**
   * What this process has to make up now; undefined as soon as nobody has to make up anything. Of several processes that
   * start at once one does it, and the others wait for it, or take it over where it dies.
   */
  next(): Promise<Missing | undefined>
  /** What `next` answered is there. */
  made(): Promise<void>
}

/** Of one process, which has its sessions in memory. */
export function allMissing(): MissingSessions {
  let areMade = false
  return {
    next: async () => (areMade ? undefined : { isOf: () => true, wasBegun: false }),
    async made() {
      areMade = true
    },
  }
}

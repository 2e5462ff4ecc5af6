import type { Push } from '../ports/push.ts'

/** Relays that wait for the accept; `taken` once it came. */
export interface Kept {
  pushes: Push[]
  bytes: number
  taken: boolean
}

/** The messages that go along when a place passes on to another session of the participant [PLACE2]. */
export interface Parcel {
  /** The same as long as it may be given again: a session takes it once. */
  readonly id: string
  /** Everything went along with another one before: this brings nothing. */
  readonly isPassed?: true
  /** If the accept among these is told there, the answers and candidates for older offers are not [PLACE5]. */
  readonly hasOldAnswers?: true
  readonly entries: readonly { readonly push: Push; readonly at: number }[]
  /** The version of the call that the session knows, and of the other side's absence: older pushes are no news. */
  readonly told?: readonly [version: number, peerVersion: number]
  /** The peer's last word about its media [MEDIA1]. */
  readonly media: Push | undefined
  readonly kept: Kept | undefined
  /** The relays that are held back; null: the gate is open. */
  readonly gate: readonly Push[] | null | undefined
  /** Which requests were taken, of each sender, as text. */
  readonly taken: readonly (readonly [sender: string, taken: string])[]
}

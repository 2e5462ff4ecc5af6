import Type, { type Static } from 'typebox'
import { uuid } from './text.ts'

const namedParty = (description: string) =>
  Type.Object(
    { user_id: Type.String(), role: Type.String(), display_name: Type.Union([Type.String(), Type.Null()]) },
    { description },
  )

/** The fields of a call that began as a transfer; no other call has any of them [XFER1]. */
export const transferOrigin = {
  transferred_from: Type.Optional(uuid('The call that this one was transferred from [XFER1].')),
  transferred_by: Type.Optional(namedParty('Who transferred it.')),
}
const TransferOrigin = Type.Object(transferOrigin)
export type TransferOrigin = Static<typeof TransferOrigin>

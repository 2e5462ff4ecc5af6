import Type, { type Static } from 'typebox'

export const AuthOk = Type.Object({
  user_id: Type.String(),
  role: Type.String(),
  display_name: Type.String(),
  socket_id: Type.String({ description: 'Identifier of this socket: 128 random bits [ID2].' }),
})
export type AuthOk = Static<typeof AuthOk>

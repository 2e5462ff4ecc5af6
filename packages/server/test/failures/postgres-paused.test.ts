import { outageEnv, registerDatabaseOutage } from './postgres-outage.ts'
import { worldFor } from './world.ts'

registerDatabaseOutage('stands still', worldFor({ env: outageEnv }), {
  begin: ({ postgres }) => postgres.freeze('SIGSTOP'),
  end: ({ postgres }) => postgres.freeze('SIGCONT'),
})

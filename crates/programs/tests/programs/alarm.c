#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>
#include <signal.h>
#include <sys/time.h>
#include <errno.h>
static char me[32]; static long ctr; static volatile sig_atomic_t tick;
static void on(int s){(void)s;tick++;}
static long num(const char*l,const char*k){const char*p=strstr(l,k);return p?atol(p+strlen(k)):-1;}
static void str(const char*l,const char*k,char*o){const char*p=strstr(l,k);o[0]=0;if(!p)return;p+=strlen(k);int i=0;while(*p&&*p!='"'&&i<30)o[i++]=*p++;o[i]=0;}
int main(void){
  struct sigaction sa={0}; sa.sa_handler=on; sa.sa_flags=SA_RESTART; sigaction(SIGALRM,&sa,0);
  struct itimerval it={{1,0},{1,0}}; setitimer(ITIMER_REAL,&it,0);
  char line[65536];
  while(fgets(line,sizeof line,stdin)){
    char src[32];str(line,"\"src\":\"",src);
    long id=num(line,"\"msg_id\":");
    if(strstr(line,"\"type\":\"init\"")){str(line,"\"node_id\":\"",me);printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"init_ok\",\"in_reply_to\":%ld}}\n",me,src,id);}
    else if(strstr(line,"\"type\":\"generate\"")){printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"generate_ok\",\"id\":\"%s-%ld-%d\",\"in_reply_to\":%ld}}\n",me,src,me,ctr++,(int)tick,id);}
    fflush(stdout);
  }
  return 0;}

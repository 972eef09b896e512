#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <sys/epoll.h>
static char me[32], peers[8][16]; static int np; static long vals[4096]; static int nv;
static long num(const char*l,const char*k){const char*p=strstr(l,k);return p?atol(p+strlen(k)):-1;}
static void str(const char*l,const char*k,char*o){const char*p=strstr(l,k);o[0]=0;if(!p)return;p+=strlen(k);int i=0;while(*p&&*p!='"'&&i<30)o[i++]=*p++;o[i]=0;}
static void addv(long v){for(int i=0;i<nv;i++)if(vals[i]==v)return;vals[nv++]=v;}
static void list(char*o){o+=sprintf(o,"[");for(int i=0;i<nv;i++)o+=sprintf(o,"%s%ld",i?",":"",vals[i]);sprintf(o,"]");}
static void handle(char*line){
    char src[32],all[65536];str(line,"\"src\":\"",src);long id=num(line,"\"msg_id\":");
    if(strstr(line,"\"type\":\"init\"")){str(line,"\"node_id\":\"",me);char*p=strstr(line,"\"node_ids\":[");while(p&&*p&&*p!=']'){if(*p=='"'&&p[1]=='n'&&p[2]!='o'){sscanf(p+1,"%15[^\"]",peers[np]);if(strcmp(peers[np],me))np++;p=strchr(p+1,'"');}p++;}
      printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"init_ok\",\"in_reply_to\":%ld}}\n",me,src,id);}
    else if(strstr(line,"\"type\":\"add\"")){addv(num(line,"\"element\":"));printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"add_ok\",\"in_reply_to\":%ld}}\n",me,src,id);}
    else if(strstr(line,"\"type\":\"read\"")){list(all);printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"read_ok\",\"value\":%s,\"in_reply_to\":%ld}}\n",me,src,all,id);}
    else if(strstr(line,"\"type\":\"m\"")){char*p=strstr(line,"\"v\":[");if(p){p+=5;while(*p&&*p!=']'){addv(strtol(p,&p,10));if(*p==',')p++;}}}
    fflush(stdout);}
int main(void){
  int t=timerfd_create(CLOCK_MONOTONIC,0),e=epoll_create1(0);struct itimerspec its={{1,0},{1,0}};timerfd_settime(t,0,&its,0);
  struct epoll_event ev={.events=EPOLLIN,.data.fd=0};epoll_ctl(e,EPOLL_CTL_ADD,0,&ev);ev.data.fd=t;epoll_ctl(e,EPOLL_CTL_ADD,t,&ev);
  static char buf[1<<20];size_t have=0;
  for(;;){struct epoll_event out[4];int n=epoll_wait(e,out,4,-1);
    for(int i=0;i<n;i++){
      if(out[i].data.fd==0){ssize_t g=read(0,buf+have,sizeof buf-have-1);if(g<=0)return 0;have+=g;buf[have]=0;char*nl;while((nl=memchr(buf,'\n',have))){*nl=0;handle(buf);size_t l=nl-buf+1;memmove(buf,buf+l,have-l);have-=l;}}
      else{uint64_t x;if(read(t,&x,8)==8){char all[65536];list(all);for(int j=0;j<np;j++)printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"m\",\"v\":%s}}\n",me,peers[j],all);fflush(stdout);}}
    }}
}
